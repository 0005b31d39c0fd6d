package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.FailureCodec;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.MessageChannel.ByteLink.Traffic;
import io.weft.memory.Memory;
import java.util.Optional;

/** A rank's control segment as mapped into this process: the owner writes it, its peers read it. */
final class ControlBlock {
  static final int OPEN = 0;
  static final int FAILED = 1;
  static final int CLOSED = 2;

  private final long address;
  private final ControlLayout layout;

  /** Here as well, because every operation reads them many times. */
  private final long slots;

  private final long slotStride;

  ControlBlock(long address, ControlLayout layout) {
    this.address = address;
    this.layout = layout;
    this.slots = address + ControlLayout.SLOTS;
    this.slotStride = layout.slotStride();
  }

  /** The address of the slot of an entry. */
  private long slot(int stamp) {
    return slots + (stamp & 1) * slotStride;
  }

  int state() {
    return Memory.getIntAcquire(address + ControlLayout.STATE);
  }

  void fail(CollectiveException cause) {
    byte[] bytes = FailureCodec.encode(cause, ControlLayout.FAILURE_BYTES);
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
    return Optional.of(FailureCodec.decode(bytes));
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
    return Memory.getIntAcquire(slot(wanted) + ControlLayout.STAMP);
  }

  /** The stamp of the owner's newest entry; entries use the two slots alternately. */
  int lastStamp() {
    int even = stamp(0);
    int odd = stamp(1);
    return even - odd > 0 ? even : odd;
  }

  void writeHeader(int stamp, Call call, long sendDescriptor, long receiveDescriptor) {
    long slot = slot(stamp);
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
    Memory.putIntRelease(slot(stamp) + ControlLayout.STAMP, stamp);
  }

  /** Whether the owner's entry is for the same operation as the call. */
  boolean agrees(int stamp, Call call) {
    long slot = slot(stamp);
    Signature signature = call.signature();
    return Memory.getInt(slot + ControlLayout.CODE) == signature.code()
        && Memory.getLong(slot + ControlLayout.COUNT) == signature.count()
        && Memory.getInt(slot + ControlLayout.ROOT) == signature.root()
        && Memory.getInt(slot + ControlLayout.PHASE) == call.phase()
        && Memory.getLong(slot + ControlLayout.SEQUENCE) == call.sequence();
  }

  Signature signature(int stamp) {
    long slot = slot(stamp);
    return new Signature(
        Memory.getInt(slot + ControlLayout.CODE),
        Memory.getInt(slot + ControlLayout.ROOT),
        Memory.getLong(slot + ControlLayout.COUNT));
  }

  long sequence(int stamp) {
    return Memory.getLong(slot(stamp) + ControlLayout.SEQUENCE);
  }

  long sendDescriptor(int stamp) {
    return Memory.getLong(slot(stamp) + ControlLayout.SEND);
  }

  long receiveDescriptor(int stamp) {
    return Memory.getLong(slot(stamp) + ControlLayout.RECEIVE);
  }

  /**
   * Adds the address of the send buffer in the owner's process to an entry without a tiny payload.
   */
  void writeAddress(int stamp, long send) {
    Memory.putLong(slot(stamp) + ControlLayout.SEND_ADDRESS, send);
  }

  /** The address of the send buffer in the owner's process. */
  long sendAddress(int stamp) {
    return Memory.getLong(slot(stamp) + ControlLayout.SEND_ADDRESS);
  }

  /** Adds a number to an entry without a tiny payload. */
  void writeNote(int stamp, long note) {
    Memory.putLong(slot(stamp) + ControlLayout.NOTE, note);
  }

  long note(int stamp) {
    return Memory.getLong(slot(stamp) + ControlLayout.NOTE);
  }

  /**
   * The address of the payload of an entry.
   *
   * @param bytes of the whole payload
   */
  long payload(int stamp, long bytes) {
    return slot(stamp) + ControlLayout.payload(bytes);
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

  /**
   * The layout of the segment that every rank of a host reserves and the others map read-only: only
   * its owner writes to it. Lines are 128 bytes, so that writes of different ranks never share a
   * line that the processor fetches at once.
   *
   * <pre>
   *      0  +------------------------------+
   *         | state: open, failed, closed  |
   *    128  | what the owner waits for,    |
   *         | beat: polls while it waits   |
   *    256  | step: syncs passed           |
   *    512  | failure: length and bytes    |
   *   4096  +------------------------------+
   *         | slot 0: header, payload      |  entries of even stamp
   *         | slot 1: header, payload      |  entries of odd stamp
   *         +------------------------------+
   *         | stage 0, 1, 2                |  chunks, in rotation
   *         +------------------------------+
   *         | consumed: a line per ring    |  rings towards the owner
   *         +------------------------------+
   *         | ring: written, data          |  one per peer and traffic
   *         | ...                          |
   *         +------------------------------+
   * </pre>
   *
   * <p>Slot header, 64 bytes, one line of the processor's caches:
   *
   * <pre>
   *   0 int stamp | 4 int code | 8 int root | 12 int phase | 16 long count | 24 long sequence
   *  32 long send descriptor | 40 long receive descriptor | 48 payload of up to 16 bytes,
   *  or 48 long send address | 56 long note
   * </pre>
   *
   * <p>A longer payload follows the header.
   */
  static final class ControlLayout {
    static final int LINE = 128;

    static final int STATE = 0;
    static final int WAIT = 128;
    static final int BEAT = WAIT + WaitStatus.BYTES;
    static final int STEP = 256;
    static final int FAILURE_LENGTH = 512;
    static final int FAILURE = 516;
    static final int FAILURE_BYTES = 4096 - FAILURE;
    private static final int SLOTS = 4096;

    static final int STAMP = 0;
    static final int CODE = 4;
    static final int ROOT = 8;
    static final int PHASE = 12;
    static final int COUNT = 16;
    static final int SEQUENCE = 24;
    static final int SEND = 32;
    static final int RECEIVE = 40;

    static final int SEND_ADDRESS = 48;
    static final int NOTE = 56;

    private static final int TINY_PAYLOAD = 48;
    private static final int TINY_BYTES = 16;
    private static final int PAYLOAD = 64;

    static final int STAGES = 3;

    private final BufferSizes sizes;
    private final int ranks;

    /**
     * The layout for a number of ranks on a host.
     *
     * @param ranks of the host
     */
    ControlLayout(BufferSizes sizes, int ranks) {
      this.sizes = sizes;
      this.ranks = ranks;
    }

    BufferSizes sizes() {
      return sizes;
    }

    /**
     * The offset of a payload in a slot. A tiny payload shares a cache line with its header.
     *
     * @param bytes of the whole payload
     */
    static int payload(long bytes) {
      return bytes <= TINY_BYTES ? TINY_PAYLOAD : PAYLOAD;
    }

    private long slotStride() {
      return (long) LINE + sizes.slotBytes();
    }

    long stage(int turn) {
      return stages() + (long) turn * sizes.stageBytes();
    }

    private long stages() {
      return SLOTS + 2 * slotStride();
    }

    /** The offset, in the receiver's segment, of the counter for the ring from a peer. */
    long consumed(Traffic traffic, int from) {
      return consumedLines() + (long) traffic.index(ranks, from) * LINE;
    }

    private long consumedLines() {
      return stages() + (long) STAGES * sizes.stageBytes();
    }

    /**
     * The offset, in the sender's segment, of the counter for the ring to a peer; the data follows
     * one line later.
     */
    long written(Traffic traffic, int to) {
      return rings() + (long) traffic.index(ranks, to) * (LINE + (long) sizes.ringBytes());
    }

    private long rings() {
      return consumedLines() + (long) Traffic.COUNT * ranks * LINE;
    }

    long bytes() {
      return rings() + (long) Traffic.COUNT * ranks * (LINE + (long) sizes.ringBytes());
    }
  }
}
