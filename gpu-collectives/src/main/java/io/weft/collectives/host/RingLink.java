package io.weft.collectives.host;

import io.weft.collectives.host.ControlBlock.ControlLayout;
import io.weft.collectives.host.MessageChannel.ByteLink;
import io.weft.collectives.host.MessageChannel.ByteLink.Traffic;
import io.weft.memory.Memory;

/**
 * A link through two rings in shared memory. The sender owns the data and the count of bytes
 * written; the receiver owns the count of bytes consumed. Counts only grow (as unsigned 32-bit
 * numbers that wrap around), so their difference is the number of bytes in flight.
 */
final class RingLink implements ByteLink {
  private final long outData;
  private final long outWritten;
  private final long outConsumed;
  private final long inData;
  private final long inWritten;
  private final long inConsumed;
  private final int ringBytes;
  private int put;
  private int pushed;
  private int taken;

  /**
   * Opens the link between two ranks of a host. It continues from the counts in the segments, which
   * are zero in new ones.
   *
   * @param mine this rank's segment
   * @param theirs the peer's
   * @param me index of this rank on the host
   * @param peer index of the peer
   */
  RingLink(
      ControlBlock mine, ControlBlock theirs, int me, int peer, Traffic traffic, int ringBytes) {
    this.outWritten = mine.written(traffic, peer);
    this.outData = outWritten + ControlLayout.LINE;
    this.outConsumed = theirs.consumed(traffic, me);
    this.inWritten = theirs.written(traffic, me);
    this.inData = inWritten + ControlLayout.LINE;
    this.inConsumed = mine.consumed(traffic, peer);
    this.ringBytes = ringBytes;
    this.put = Memory.getIntAcquire(outWritten);
    this.pushed = put;
    this.taken = Memory.getIntAcquire(inConsumed);
  }

  @Override
  public int put(long address, long bytes) {
    int room = ringBytes - (put - Memory.getIntAcquire(outConsumed));
    int length = (int) Math.min(bytes, room);
    if (length > 0) {
      int at = put & ringBytes - 1;
      int first = Math.min(length, ringBytes - at);
      Memory.copy(address, outData + at, first);
      Memory.copy(address + first, outData, length - first);
      put += length;
    }
    return length;
  }

  @Override
  public boolean push() {
    if (pushed != put) {
      pushed = put;
      Memory.putIntRelease(outWritten, put);
    }
    return true;
  }

  @Override
  public int take(long address, long bytes) {
    int available = Memory.getIntAcquire(inWritten) - taken;
    int length = (int) Math.min(bytes, available);
    if (length > 0) {
      int at = taken & ringBytes - 1;
      int first = Math.min(length, ringBytes - at);
      Memory.copy(inData + at, address, first);
      Memory.copy(inData, address + first, length - first);
      taken += length;
      Memory.putIntRelease(inConsumed, taken);
    }
    return length;
  }
}
