package io.weft.collectives.host;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.FailureCode;
import io.weft.collectives.operation.Signature;
import io.weft.memory.Memory;
import java.util.Optional;

/** A rank's control segment as mapped here: written through by its owner, read by its peers. */
final class ControlBlock {
  static final int OPEN = 0;
  static final int FAILED = 1;
  static final int CLOSED = 2;

  private final long address;
  private final ControlLayout layout;

  ControlBlock(long address, ControlLayout layout) {
    this.address = address;
    this.layout = layout;
  }

  int state() {
    return Memory.getIntAcquire(address + ControlLayout.STATE);
  }

  void fail(CollectiveException cause) {
    byte[] bytes = FailureCode.encode(cause, ControlLayout.FAILURE_BYTES);
    Memory.copyFrom(bytes, Memory.BYTE_ARRAY, address + ControlLayout.FAILURE, bytes.length);
    Memory.putInt(address + ControlLayout.FAILURE_LENGTH, bytes.length);
    Memory.putIntRelease(address + ControlLayout.STATE, FAILED);
  }

  /** As {@link #fail} where neither a failure nor the end was written before. */
  void failUnlessEnded(CollectiveException cause) {
    if (state() == OPEN) {
      fail(cause);
    }
  }

  /** A failure that was written before stays to be read. */
  void close() {
    if (state() == OPEN) {
      Memory.putIntRelease(address + ControlLayout.STATE, CLOSED);
    }
  }

  /** What the owner failed of; empty unless the state is FAILED. */
  Optional<CollectiveException> failure() {
    if (state() != FAILED) {
      return Optional.empty();
    }
    byte[] bytes = new byte[Memory.getInt(address + ControlLayout.FAILURE_LENGTH)];
    Memory.copyTo(address + ControlLayout.FAILURE, bytes, Memory.BYTE_ARRAY, bytes.length);
    return Optional.of(FailureCode.decode(bytes));
  }

  /**
   * Says that the owner waits for a rank within an operation. Only written when a wait is not
   * short, for those who look for the reason of a delay.
   */
  void publishWait(WaitStatus status) {
    status.write(address + ControlLayout.WAIT);
  }

  void publishNoWait() {
    WaitStatus.clear(address + ControlLayout.WAIT);
  }

  Optional<WaitStatus> waiting() {
    return WaitStatus.read(address + ControlLayout.WAIT);
  }

  /** Counts the looks of an owner that waits: one that does not look any more is stuck. */
  int beat() {
    return Memory.getIntAcquire(address + ControlLayout.BEAT);
  }

  void publishBeat() {
    long beat = address + ControlLayout.BEAT;
    Memory.putIntRelease(beat, Memory.getInt(beat) + 1);
  }

  int step() {
    return Memory.getIntAcquire(address + ControlLayout.STEP);
  }

  void publishStep(int step) {
    Memory.putIntRelease(address + ControlLayout.STEP, step);
  }

  int stamp(int wanted) {
    return Memory.getIntAcquire(address + layout.slot(wanted) + ControlLayout.STAMP);
  }

  /** The stamp of the owner's newest entry; slots are used in turn. */
  int lastStamp() {
    int even = stamp(0);
    int odd = stamp(1);
    return even - odd > 0 ? even : odd;
  }

  void writeHeader(int stamp, Call call, long sendDescriptor, long receiveDescriptor) {
    long slot = address + layout.slot(stamp);
    Signature signature = call.signature();
    Memory.putInt(slot + ControlLayout.CODE, signature.code());
    Memory.putInt(slot + ControlLayout.ROOT, signature.root());
    Memory.putInt(slot + ControlLayout.PHASE, call.phase());
    Memory.putLong(slot + ControlLayout.COUNT, signature.count());
    Memory.putLong(slot + ControlLayout.SEQUENCE, call.sequence());
    Memory.putLong(slot + ControlLayout.SEND, sendDescriptor);
    Memory.putLong(slot + ControlLayout.RECEIVE, receiveDescriptor);
  }

  /** Everything written to the slot before becomes visible with it. */
  void publishStamp(int stamp) {
    Memory.putIntRelease(address + layout.slot(stamp) + ControlLayout.STAMP, stamp);
  }

  /** Whether the owner does the same in this entry as the call. */
  boolean agrees(int stamp, Call call) {
    long slot = address + layout.slot(stamp);
    Signature signature = call.signature();
    return Memory.getInt(slot + ControlLayout.CODE) == signature.code()
        && Memory.getLong(slot + ControlLayout.COUNT) == signature.count()
        && Memory.getInt(slot + ControlLayout.ROOT) == signature.root()
        && Memory.getInt(slot + ControlLayout.PHASE) == call.phase()
        && Memory.getLong(slot + ControlLayout.SEQUENCE) == call.sequence();
  }

  Signature signature(int stamp) {
    long slot = address + layout.slot(stamp);
    return new Signature(
        Memory.getInt(slot + ControlLayout.CODE),
        Memory.getInt(slot + ControlLayout.ROOT),
        Memory.getLong(slot + ControlLayout.COUNT));
  }

  long sequence(int stamp) {
    return Memory.getLong(address + layout.slot(stamp) + ControlLayout.SEQUENCE);
  }

  long sendDescriptor(int stamp) {
    return Memory.getLong(address + layout.slot(stamp) + ControlLayout.SEND);
  }

  long receiveDescriptor(int stamp) {
    return Memory.getLong(address + layout.slot(stamp) + ControlLayout.RECEIVE);
  }

  /**
   * Where the payload of an entry lies.
   *
   * @param bytes of the whole payload
   */
  long payload(int stamp, long bytes) {
    return address + layout.slot(stamp) + ControlLayout.payload(bytes);
  }

  /**
   * Where a chunk is staged.
   *
   * @param turn 0 to 2
   */
  long stage(int turn) {
    return address + layout.stage(turn);
  }

  long consumed(Traffic traffic, int from) {
    return address + layout.consumed(traffic, from);
  }

  long written(Traffic traffic, int to) {
    return address + layout.written(traffic, to);
  }
}
