package io.weft.examples.side;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Closes resources, the last one first: on close, or earlier on a shutdown (Ctrl-C). Thread-safe.
 */
public final class Cleanup implements AutoCloseable {
  private final Deque<AutoCloseable> open = new ArrayDeque<>();
  private final Thread hook = new Thread(this::run, "weft-cleanup");
  private boolean closed;

  /** Registers a shutdown hook. */
  public Cleanup() {
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /**
   * Adds a resource and returns it.
   *
   * @throws IllegalStateException if shutdown has begun; then the resource is closed
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
      // The hook runs and finds no resource to close.
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
