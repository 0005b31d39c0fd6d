package io.weft.collectives.host;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.FailureCode;
import io.weft.collectives.operation.Signature;
import io.weft.memory.Memory;
import java.util.Optional;

/** A rank's control segment as mapped into this process: the owner writes it, its peers read it. */
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

  /** Writes a failure unless a failure or the end was written before. */
  void failUnlessEnded(CollectiveException cause) {
    if (state() == OPEN) {
      fail(cause);
    }
  }

  /** Marks the owner as closed; a failure that was written before stays. */
  void close() {
    if (state() == OPEN) {
      Memory.putIntRelease(address + ControlLayout.STATE, CLOSED);
    }
  }

  /** The failure of the owner; empty unless the state is FAILED. */
  Optional<CollectiveException> failure() {
    if (state() != FAILED) {
      return Optional.empty();
    }
    byte[] bytes = new byte[Memory.getInt(address + ControlLayout.FAILURE_LENGTH)];
    Memory.copyTo(address + ControlLayout.FAILURE, bytes, Memory.BYTE_ARRAY, bytes.length);
    return Optional.of(FailureCode.decode(bytes));
  }

  /**
   * Publishes the rank that the owner waits for within an operation. Only long waits are published,
   * to explain delays.
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

  /** Counts the polls of an owner that waits; an owner whose count stops is stuck. */
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

  /** The stamp of the owner's newest entry; entries use the two slots alternately. */
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

  /** Everything written to the slot before becomes visible with the stamp. */
  void publishStamp(int stamp) {
    Memory.putIntRelease(address + layout.slot(stamp) + ControlLayout.STAMP, stamp);
  }

  /** Whether the owner's entry is for the same operation as the call. */
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
   * The address of the payload of an entry.
   *
   * @param bytes of the whole payload
   */
  long payload(int stamp, long bytes) {
    return address + layout.slot(stamp) + ControlLayout.payload(bytes);
  }

  /**
   * The address of a stage.
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
