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
 * One end of a transfer that is encoded on its way. At most one of its chunks is being encoded or
 * decoded at a time, in their order. For the lane's thread.
 */
abstract class CodedTransfer<T> {
  /** Told instead of a chunk's bytes when there is none and none will follow. */
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

  /** No chunk follows. */
  final void stop() {
    ended = true;
  }

  final void start(TransferCounter done, Callable<T> chunk) {
    running = transfer.coding().coders().submit(done, chunk);
  }

  /**
   * The result of what was started last; empty where nothing was, or it failed. Where it takes too
   * long the transfer fails, and its memory is kept until the coder has let go of it.
   */
  final Optional<T> finish() {
    CompletableFuture<T> last = running;
    Duration patience = transfer.coding().coders().patience();
    running = null;
    boolean interrupted = false;
    try {
      while (last != null) {
        try {
          return Optional.of(last.get(patience.toNanos(), TimeUnit.NANOSECONDS));
        } catch (InterruptedException e) {
          // Its memory must not go back before it has ended.
          interrupted = true;
        } catch (ExecutionException e) {
          fail(e.getCause());
          last = null;
        } catch (TimeoutException e) {
          transfer.keepUntil(last);
          fail(
              new IllegalStateException(
                  "a chunk was not encoded or decoded within "
                      + Deadline.describe(patience.toNanos()),
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

  /** Lets the transfer fail where a chunk did. The lane touches the buffer no more. */
  final void end() {
    if (failure != null) {
      transfer.end(failure);
    }
  }

  final TypedBuffer length(int chunk) {
    return transfer.coding().length(chunk);
  }

  /** What both ends know once lengths have moved. */
  final long bytes(int chunk) {
    return Memory.getLong(length(chunk).address());
  }

  /** The chunk itself. */
  final TypedBuffer body(int chunk) {
    return transfer.coding().room(chunk).slice(0, bytes(chunk));
  }
}
