package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * One end of an encoded transfer. At most one of its chunks is encoded or decoded at a time, in
 * their order. Used by the lane's thread.
 */
abstract class CodedTransfer<T> {
  /** The length that means that the sender could not encode the chunk and sends no more. */
  static final long NONE = -1;

  private final PreparedTransfer transfer;
  private final int chunks;
  private CompletableFuture<T> running;
  private RuntimeException failure;
  private boolean ended;

  CodedTransfer(PreparedTransfer transfer) {
    this.transfer = transfer;
    this.chunks = Coding.chunks(transfer.buffer().count());
  }

  PreparedTransfer transfer() {
    return transfer;
  }

  /** The elements at this end. */
  final Tensor tensor() {
    return Tensor.of(transfer.buffer(), transfer.buffer().count());
  }

  final boolean has(int chunk) {
    return !ended && chunk < chunks;
  }

  /** Skips the remaining chunks. */
  final void stop() {
    ended = true;
  }

  final void start(TransferCounter done, Callable<T> chunk) {
    running = transfer.coding().coders().submit(done, chunk);
  }

  /**
   * Waits for the chunk that was started last, and returns its result. Empty if no chunk was
   * started, or it failed. After a timeout the transfer fails, and keeps its memory until the coder
   * releases it.
   */
  final Optional<T> finish() {
    CompletableFuture<T> last = running;
    Duration timeout = transfer.coding().coders().timeout();
    running = null;
    boolean interrupted = false;
    try {
      while (last != null) {
        try {
          return Optional.of(last.get(timeout.toNanos(), TimeUnit.NANOSECONDS));
        } catch (InterruptedException e) {
          // The chunk's memory must stay until the chunk has ended.
          interrupted = true;
        } catch (ExecutionException e) {
          fail(e.getCause());
          last = null;
        } catch (TimeoutException e) {
          transfer.keepUntil(last);
          fail(
              new IllegalStateException(
                  "a chunk was not encoded or decoded within "
                      + Deadline.describe(timeout.toNanos()),
                  e));
          last = null;
        }
      }
      return Optional.empty();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** The first failure counts. */
  final void fail(Throwable cause) {
    if (failure == null) {
      failure =
          new TransferException(transfer.event().what() + " failed: " + cause.getMessage(), cause);
    }
  }

  final boolean failed() {
    return failure != null;
  }

  /** Fails the transfer if a chunk failed. The lane does not touch the buffer afterwards. */
  final void end() {
    if (failure != null) {
      transfer.end(failure);
    }
  }

  final TypedBuffer length(int chunk) {
    return transfer.coding().length(chunk);
  }

  /** The length of a chunk, known to both ends after the lengths have moved. */
  final long bytes(int chunk) {
    return Memory.getLong(length(chunk).address());
  }

  /** The bytes of a chunk. */
  final TypedBuffer body(int chunk) {
    return transfer.coding().room(chunk).slice(0, bytes(chunk));
  }
}
