package io.weft.collectives.host;

/**
 * The layout of the segment that every rank of a host reserves and the others map read-only: only
 * its owner writes to it. Lines are 128 bytes, so that writes of different ranks never share a line
 * that the processor fetches at once.
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
 *  32 long send descriptor | 40 long receive descriptor | 48 payload of up to 16 bytes
 * </pre>
 *
 * <p>A longer payload follows the header.
 */
final class ControlLayout {
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

  long slot(int stamp) {
    return SLOTS + (long) (stamp & 1) * slotStride();
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
