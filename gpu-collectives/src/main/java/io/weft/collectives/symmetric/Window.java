package io.weft.collectives.symmetric;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.memory.Memory;
import io.weft.memory.OffsetLedger;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The same range of bytes on every rank. Each rank may read and write it on all ranks. In front of
 * the bytes every rank has a line of signals for each peer, which only that peer raises.
 *
 * <pre> signals from rank 0 (128 bytes) | ... from rank n-1 | bytes 0 to bytes() - 1
 * </pre>
 *
 * <p>{@code put} and {@code get} are plain copies. To transfer bytes, put, then {@link #signal};
 * the peer {@link #await}s the signal and reads. Thread-safe for different ranges and slots.
 *
 * <p>Closing is not collective. The bytes are reused when all ranks have closed the window and
 * every event of {@link #usedUntil} has ended on all of them.
 */
public final class Window implements BufferOwner, AutoCloseable {
  /** The number of signals from each peer. */
  public static final int SLOTS = SymmetricBuffer.SLOTS;

  static final long LINE = OffsetLedger.ALIGNMENT;

  private final SymmetricArena arena;
  private final SymmetricSegment segment;
  private final int number;
  private final long offset;
  private final long bytes;
  private final UseCount uses;
  private final AtomicBoolean closed = new AtomicBoolean();

  Window(SymmetricArena arena, SymmetricSegment segment, int number, long offset, long bytes) {
    this.arena = arena;
    this.segment = segment;
    this.number = number;
    this.offset = offset;
    this.bytes = bytes;
    this.uses = new UseCount(() -> arena.ended(number));
  }

  /** The bytes that a window takes of its segment. */
  static long footprint(long bytes, int nranks) {
    return OffsetLedger.aligned(Math.addExact(bytes, nranks * LINE));
  }

  /** Sets all signals to zero. Every rank does this before any rank may signal. */
  void zeroSignals() {
    Memory.setMemory(segment.base(rank()) + offset, nranks() * LINE, (byte) 0);
  }

  /** The number of the window, the same on all ranks. */
  public int number() {
    return number;
  }

  public int rank() {
    return arena.communicator().rank();
  }

  public int nranks() {
    return arena.communicator().nranks();
  }

  /** The address of this rank's byte 0. */
  @Override
  public long address() {
    return address(rank());
  }

  /** The address where a rank's byte 0 is mapped in this process. */
  long address(int peer) {
    requireOpen();
    return segment.base(peer) + offset + nranks() * LINE;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  /**
   * The place in the arena, the same on all ranks: number of the segment and offset in it, as text.
   */
  String place() {
    return arena.place(segment) + "+" + offset;
  }

  SymmetricSegment segment() {
    return segment;
  }

  long offset() {
    return offset;
  }

  /** All of this rank's bytes. */
  public TypedBuffer buffer(DataType type) {
    return buffer(0, type, bytes / type.bytes());
  }

  /**
   * Some of this rank's bytes.
   *
   * @param first byte
   * @throws IndexOutOfBoundsException if the bytes are not all within the window
   */
  public TypedBuffer buffer(long first, DataType type, long count) {
    return TypedBuffer.of(this, first, type, count);
  }

  /**
   * Copies elements into a peer's part.
   *
   * @param to byte of the window
   * @throws IndexOutOfBoundsException if peer or bytes are out of range
   * @throws IllegalStateException if the window is closed
   * @throws CollectiveException of kind INVALID if the memory of the elements was freed
   */
  public void put(TypedBuffer source, int peer, long to) {
    retain();
    try {
      long target = remote(peer, to, source.bytes());
      Memory.copy(held(source), target, source.bytes());
    } finally {
      release();
    }
  }

  /** Copies elements out of a peer's part; otherwise as {@link #put}. */
  public void get(TypedBuffer target, int peer, long from) {
    retain();
    try {
      long source = remote(peer, from, target.bytes());
      Memory.copy(source, held(target), target.bytes());
    } finally {
      release();
    }
  }

  /** The address of the caller's elements, which their owner still has. */
  private long held(TypedBuffer elements) {
    try {
      return elements.owner().address() + elements.offset();
    } catch (IllegalStateException e) {
      throw new CollectiveException(
          Kind.INVALID,
          List.of(rank()),
          "a copy by rank " + rank() + ": " + elements + " was freed: " + e.getMessage(),
          e);
    }
  }

  private long remote(int peer, long first, long length) {
    Objects.checkIndex(peer, nranks());
    Objects.checkFromIndexSize(first, length, bytes);
    return address(peer) + first;
  }

  /**
   * Sets a signal of a peer, after everything this thread wrote before.
   *
   * @param slot 0 to 15
   * @param value counts upwards; may wrap around
   */
  public void signal(int peer, int slot, int value) {
    retain();
    try {
      Memory.putIntRelease(signalAddress(peer, rank(), slot), value);
    } finally {
      release();
    }
  }

  /** The last value that a peer has signalled. Everything that it wrote before is visible. */
  int signalled(int peer, int slot) {
    return Memory.getIntAcquire(signalAddress(rank(), peer, slot));
  }

  /**
   * Waits until a peer has signalled at least this value.
   *
   * @throws CollectiveException naming both ranks, if the deadline passed or the peer ended
   */
  public void await(int peer, int slot, int value, Deadline deadline) {
    retain();
    try {
      arena
          .waiting()
          .await(
              signalAddress(rank(), peer, slot),
              value,
              peer,
              deadline,
              () -> "signal " + slot + " of window #" + number + " to " + value);
    } finally {
      release();
    }
  }

  private long signalAddress(int owner, int from, int slot) {
    Objects.checkIndex(owner, nranks());
    Objects.checkIndex(from, nranks());
    Objects.checkIndex(slot, SLOTS);
    requireOpen();
    return segment.base(owner) + offset + from * LINE + slot * (long) Integer.BYTES;
  }

  private void requireOpen() {
    if (closed.get()) {
      throw new IllegalStateException("symmetric window #" + number + " is closed");
    }
  }

  /** Keeps the memory mapped until {@link #release}. */
  void retain() {
    uses.retain();
  }

  void release() {
    uses.release();
  }

  /** Keeps the memory until the event has ended, even if the window is closed earlier. */
  @Override
  public void usedUntil(Event event) {
    requireOpen();
    uses.until(event);
  }

  /** Closes the window on this rank. Closing again does nothing. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      uses.release();
    }
  }

  @Override
  public String toString() {
    return "symmetric window #" + number + " of " + bytes + " bytes";
  }
}
