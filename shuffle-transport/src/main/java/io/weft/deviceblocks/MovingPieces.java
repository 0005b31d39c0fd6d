package io.weft.deviceblocks;

import io.weft.device.cuda.HostCopy;
import io.weft.device.cuda.TieredHold;
import io.weft.deviceblocks.DeviceOutput.Unit;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * The bytes of a device's map output, in the order of its stream. Holds the units that are not read
 * yet, and keeps a host copy of one unit at a time. Used by one thread at a time.
 */
final class MovingPieces implements AutoCloseable {
  private final CRC32C sum = new CRC32C();
  private final List<TieredHold> holds = new ArrayList<>();
  private ByteBuffer piece;
  private HostCopy copy;
  private int next;

  /**
   * Holds the units of an output.
   *
   * @param head the head and the index
   * @throws IllegalStateException if the output was removed
   */
  MovingPieces(ByteBuffer head, List<Unit> units) {
    this.piece = head;
    sum.update(head.slice(TablesFormat.HEAD_BYTES, head.remaining() - TablesFormat.HEAD_BYTES));
    try {
      for (Unit unit : units) {
        holds.add(unit.memory().hold());
      }
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  /**
   * The next bytes to read; null at the end. Waits for the device, with the timeout of the tiers.
   */
  ByteBuffer current() {
    while (!piece.hasRemaining()) {
      forgetCopy();
      if (next > holds.size()) {
        return null;
      }
      piece = next == holds.size() ? sum() : unit();
      next++;
    }
    return piece;
  }

  private ByteBuffer unit() {
    copy = holds.get(next).copy();
    sum.update(copy.view());
    return copy.view();
  }

  private ByteBuffer sum() {
    return ByteBuffer.allocate(TablesFormat.SUM_BYTES).putInt((int) sum.getValue()).flip();
  }

  private void forgetCopy() {
    if (copy != null) {
      copy.close();
      copy = null;
    }
  }

  /** Releases the memory; no byte may be read afterwards. Idempotent. */
  @Override
  public void close() {
    forgetCopy();
    holds.forEach(TieredHold::close);
  }
}
