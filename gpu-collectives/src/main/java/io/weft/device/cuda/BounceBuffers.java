package io.weft.device.cuda;

import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.memory.Memory;

/**
 * Copies between any host memory and the device through two pinned buffers, piece by piece. The
 * device copies one piece while the calling thread copies the other. The device never accesses the
 * host memory of the caller, so that memory is unused as soon as a method returns or throws.
 *
 * <p>The calling thread waits only through {@link Wait}. The driver's own copies of memory that is
 * not pinned may wait for the stream, and a dead peer can block that forever. Used by one thread at
 * a time, the stream's.
 */
public final class BounceBuffers implements AutoCloseable {
  private static final int BUFFERS = 2;

  /** A way to wait for the device. */
  @FunctionalInterface
  public interface Wait {
    /** Returns when the mark is reached, or throws when the wait is useless. */
    void until(CudaMark mark);
  }

  /** A copy of the device that may still run; {@code toHost} is 0 for a copy to the device. */
  private record Piece(CudaMark mark, long toHost, long bytes) {}

  private final CudaStream stream;
  private final CudaMemoryPool pinned;
  private final long pieceBytes;
  private final CudaMemory[] buffers = new CudaMemory[BUFFERS];
  private final Piece[] pieces = new Piece[BUFFERS];
  private int next;

  /**
   * Creates buffers, which are taken from the pool with the first copy.
   *
   * @param pinned a pool of pinned memory
   * @param pieceBytes the size of each of the two buffers, 1 or more
   */
  public BounceBuffers(CudaStream stream, CudaMemoryPool pinned, long pieceBytes) {
    this.stream = stream;
    this.pinned = pinned;
    this.pieceBytes = pieceBytes;
  }

  /**
   * Enqueues a copy to the device and returns when the last piece is enqueued. The device copies
   * pinned memory directly, so that must stay until the stream has reached this point.
   */
  public void copyToDevice(long to, long from, long bytes, Wait wait) {
    if (isPinned(from, bytes)) {
      stream.copyToDevice(to, from, bytes);
      return;
    }
    for (long done = 0; done < bytes; done += pieceBytes) {
      long piece = Math.min(pieceBytes, bytes - done);
      long buffer = freeBuffer(wait);
      Memory.copy(from + done, buffer, piece);
      stream.copyToDevice(to + done, buffer, piece);
      enqueued(0, piece);
    }
  }

  /** Copies to the host after the enqueued work, and returns when the last byte is copied. */
  public void copyToHost(long to, long from, long bytes, Wait wait) {
    if (isPinned(to, bytes)) {
      stream.copyToHost(to, from, bytes);
      try (CudaMark mark = stream.mark()) {
        wait.until(mark);
      }
      return;
    }
    for (long done = 0; done < bytes; done += pieceBytes) {
      long piece = Math.min(pieceBytes, bytes - done);
      stream.copyToHost(freeBuffer(wait), from + done, piece);
      enqueued(to + done, piece);
    }
    for (int i = 0; i < BUFFERS; i++) {
      finish((next + i) % BUFFERS, wait);
    }
  }

  private boolean isPinned(long start, long bytes) {
    return bytes > 0
        && stream.device().isPinnedMemory(start)
        && stream.device().isPinnedMemory(start + bytes - 1);
  }

  private long freeBuffer(Wait wait) {
    finish(next, wait);
    if (buffers[next] == null) {
      buffers[next] = pinned.take(pieceBytes);
    }
    return buffers[next].address();
  }

  private void enqueued(long toHost, long bytes) {
    pieces[next] = new Piece(stream.mark(), toHost, bytes);
    next = (next + 1) % BUFFERS;
  }

  private void finish(int buffer, Wait wait) {
    Piece piece = pieces[buffer];
    if (piece == null) {
      return;
    }
    wait.until(piece.mark());
    forget(buffer);
    if (piece.toHost() != 0) {
      Memory.copy(buffers[buffer].address(), piece.toHost(), piece.bytes());
    }
  }

  private void forget(int buffer) {
    if (pieces[buffer] != null) {
      pieces[buffer].mark().close();
      pieces[buffer] = null;
    }
  }

  /** Frees the buffers; the stream must be idle or closed. */
  @Override
  public void close() {
    for (int i = 0; i < BUFFERS; i++) {
      forget(i);
      if (buffers[i] != null) {
        buffers[i].close();
        buffers[i] = null;
      }
    }
  }

  /** Drops the pending copies to the host after a failure; the stream must be idle. */
  public void reset() {
    for (int i = 0; i < BUFFERS; i++) {
      forget(i);
    }
  }
}
