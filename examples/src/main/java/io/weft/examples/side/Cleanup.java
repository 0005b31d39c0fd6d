package io.weft.examples.side;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * What has to be closed, last opened first: on close, or on a shutdown that comes before (Ctrl-C).
 * Thread-safe.
 */
public final class Cleanup implements AutoCloseable {
  private final Deque<AutoCloseable> open = new ArrayDeque<>();
  private final Thread hook = new Thread(this::run, "weft-cleanup");
  private boolean closed;

  /** Starts to listen for shutdown. */
  public Cleanup() {
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /**
   * Adds a resource and returns it.
   *
   * @throws IllegalStateException if shutdown has begun; the resource is closed then
   */
  public <T extends AutoCloseable> T add(T resource) {
    synchronized (open) {
      if (!closed) {
        open.push(resource);
        return resource;
      }
    }
    close(resource);
    throw new IllegalStateException("interrupted");
  }

  @Override
  public void close() {
    run();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException shutdownHasBegun) {
      // Then the hook runs, and finds nothing left to do.
    }
  }

  private void run() {
    while (true) {
      AutoCloseable next;
      synchronized (open) {
        closed = true;
        next = open.poll();
      }
      if (next == null) {
        return;
      }
      close(next);
    }
  }

  private static void close(AutoCloseable resource) {
    try {
      resource.close();
    } catch (Exception e) {
      System.err.println("while cleaning up: " + e);
    }
  }
}
