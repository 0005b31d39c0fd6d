package io.weft.device.cuda;

import io.weft.memory.Memory;

/**
 * Copies between any host memory and the device, in pieces through two pinned buffers: while the
 * device copies one piece, the calling thread copies the other. The device itself never touches the
 * host memory that is passed in, so that is free as soon as a method returns or throws.
 *
 * <p>The calling thread waits only where its caller lets it, by {@link Wait}: the driver's own
 * copies of memory that is not pinned may wait for the stream, which a peer that is dead holds up
 * for ever. One thread at a time, that of the stream.
 */
public final class BounceBuffers implements AutoCloseable {
  private static final int BUFFERS = 2;

  /** How to wait for the device. */
  @FunctionalInterface
  public interface Wait {
    /** Returns once the mark is reached, or throws when that has become pointless. */
    void until(CudaMark mark);
  }

  /** A copy on the device's side that may still run; to the host where that is not 0. */
  private record Piece(CudaMark mark, long toHost, long bytes) {}

  private final CudaStream stream;
  private final CudaMemoryPool pinned;
  private final long pieceBytes;
  private final CudaMemory[] buffers = new CudaMemory[BUFFERS];
  private final Piece[] pieces = new Piece[BUFFERS];
  private int next;

  /**
   * Buffers that are taken from the pool with the first copy.
   *
   * @param pinned a pool of pinned memory
   * @param pieceBytes of each of the two buffers, 1 or more
   */
  public BounceBuffers(CudaStream stream, CudaMemoryPool pinned, long pieceBytes) {
    this.stream = stream;
    this.pinned = pinned;
    this.pieceBytes = pieceBytes;
  }

  /**
   * Enqueues a copy to the device. It returns when the last piece is enqueued; pinned memory is
   * copied by the device as it lies, and has to stay until the stream has come so far.
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

  /** Copies to the host, behind what is enqueued, and returns when the last byte is there. */
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

  /** Gives the buffers back; the stream has come to rest, or has ended. */
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

  /** After a failure, with the stream at rest: what was to be copied to the host is not. */
  public void reset() {
    for (int i = 0; i < BUFFERS; i++) {
      forget(i);
    }
  }
}
