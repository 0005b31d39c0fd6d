package io.weft.transfers.gpu;

import io.weft.device.Deadline;
import io.weft.device.UnavailableLibraryException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Opens a GPU on first use, on a daemon thread "weft-gpu-open". If the driver does not answer, each
 * caller waits until its timeout and no lock is held. After a failure the next caller retries.
 * Thread-safe. Owns the opened GPU.
 *
 * @param <T> what is opened
 */
final class GpuOpener<T> implements AutoCloseable {
  private final String what;
  private final Supplier<T> open;
  private final Consumer<T> close;
  private final Duration timeout;
  private CompletableFuture<T> opening;
  private boolean closed;

  /**
   * Creates a GPU that is not open.
   *
   * @param what name of the GPU, for messages
   * @param open calls the driver
   * @param close frees what was opened
   * @param timeout how long each caller waits
   */
  GpuOpener(String what, Supplier<T> open, Consumer<T> close, Duration timeout) {
    this.what = what;
    this.open = open;
    this.close = close;
    this.timeout = timeout;
  }

  /**
   * The GPU. Opens it if it is not open.
   *
   * @throws IllegalStateException if this was closed
   * @throws UnavailableLibraryException if the driver does not answer in time
   */
  T get() {
    return get(timeout);
  }

  /** As {@link #get()}, but waits no longer than this limit. */
  T get(Duration limit) {
    CompletableFuture<T> mine = null;
    CompletableFuture<T> shared;
    synchronized (this) {
      if (closed) {
        throw new IllegalStateException(what + " was closed");
      }
      if (opening == null) {
        mine = new CompletableFuture<>();
        opening = mine;
      }
      shared = opening;
    }
    if (mine != null) {
      start(mine);
    }
    return await(shared, Math.min(timeout.toNanos(), limit.toNanos()));
  }

  private void start(CompletableFuture<T> mine) {
    Thread thread = new Thread(() -> open(mine), "weft-gpu-open");
    thread.setDaemon(true);
    thread.start();
  }

  private void open(CompletableFuture<T> mine) {
    try {
      mine.complete(open.get());
    } catch (RuntimeException | Error e) {
      synchronized (this) {
        opening = null;
      }
      mine.completeExceptionally(e);
    }
  }

  private T await(CompletableFuture<T> shared, long nanos) {
    try {
      return shared.get(nanos, TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException known) {
        throw known;
      }
      throw new IllegalStateException(what + " cannot be opened: " + e.getCause(), e.getCause());
    } catch (TimeoutException e) {
      throw new UnavailableLibraryException(
          "the NVIDIA driver did not open %s within %s".formatted(what, Deadline.describe(nanos)));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while " + what + " was being opened", e);
    }
  }

  /** The GPU, if it is open now. */
  synchronized Optional<T> now() {
    return opening == null || opening.isCompletedExceptionally()
        ? Optional.empty()
        : Optional.ofNullable(opening.getNow(null));
  }

  /** A GPU that is being opened is closed as soon as it is open. */
  @Override
  public void close() {
    CompletableFuture<T> last;
    synchronized (this) {
      closed = true;
      last = opening;
      opening = null;
    }
    if (last != null) {
      CompletableFuture<Void> unused = last.thenAccept(close);
    }
  }
}
