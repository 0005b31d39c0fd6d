package io.weft.shuffle.device;

import io.weft.device.cuda.DeviceTiers;
import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.device.DeviceOutputSource.DeviceOutputFormat;
import io.weft.shuffle.store.BlockKey;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * Reads the stream of a map output that migrates from another executor's device. The tables arrive
 * in this executor's arena as spilled tables, so the stream never waits for the device; they move
 * there when they are read. Closing without {@link #finish} frees everything. Used by one thread at
 * a time.
 */
public final class DeviceOutputSink implements AutoCloseable {
  private final DeviceCatalog catalog;
  private final DeviceTiers tiers;
  private final SharedArena arena;
  private final BlockKey key;
  private final CRC32C sum = new CRC32C();
  private final ByteArrayOutputStream start =
      new ByteArrayOutputStream(DeviceOutputFormat.HEAD_BYTES);
  private final List<Extent> extents = new ArrayList<>();
  private int indexBytes = -1;
  private List<DeviceOutputFormat.Described> units;
  private int unit;
  private long filled;

  /**
   * Creates a reader for an output.
   *
   * @param arena of the tiers
   */
  public DeviceOutputSink(
      DeviceCatalog catalog, DeviceTiers tiers, SharedArena arena, BlockKey key) {
    this.catalog = catalog;
    this.tiers = tiers;
    this.arena = arena;
    this.key = key;
  }

  /**
   * Consumes all of the next bytes.
   *
   * @throws IOException if the format is wrong, or the arena is full
   */
  public void append(ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      if (indexBytes < 0) {
        if (collect(bytes, DeviceOutputFormat.HEAD_BYTES)) {
          indexBytes = DeviceOutputFormat.decodeHead(start.toByteArray());
          start.reset();
        }
      } else if (units == null) {
        if (collect(bytes, indexBytes)) {
          sum.update(start.toByteArray());
          units = DeviceOutputFormat.decodeIndex(start.toByteArray());
          start.reset();
        }
      } else if (unit < units.size()) {
        fill(bytes);
      } else if (start.size() == DeviceOutputFormat.SUM_BYTES) {
        throw new IOException(key + " has " + bytes.remaining() + " bytes or more after its end");
      } else {
        boolean unused = collect(bytes, DeviceOutputFormat.SUM_BYTES);
      }
    }
  }

  /**
   * Collects bytes. Grows only with received bytes, never by a length field. True when complete.
   */
  private boolean collect(ByteBuffer bytes, int wanted) {
    byte[] taken = new byte[Math.min(bytes.remaining(), wanted - start.size())];
    bytes.get(taken);
    start.writeBytes(taken);
    return start.size() == wanted;
  }

  private void fill(ByteBuffer bytes) throws IOException {
    long whole = units.get(unit).bytes();
    if (filled == 0) {
      extents.add(arena.allocate(whole, Use.RETAINED));
    }
    int count = (int) Math.min(bytes.remaining(), whole - filled);
    ByteBuffer piece = bytes.slice().limit(count);
    sum.update(piece.duplicate());
    Memory.view(null, extents.get(unit).address() + filled, count).put(piece);
    bytes.position(bytes.position() + count);
    filled += count;
    if (filled == whole) {
      filled = 0;
      unit++;
    }
  }

  /**
   * Publishes the output after its last byte. Drops this copy if the catalog already has the
   * output.
   *
   * @return the bytes of its tables
   * @throws IOException if bytes are missing or damaged, or the shuffle was removed here meanwhile
   */
  public long finish() throws IOException {
    if (units == null || start.size() < DeviceOutputFormat.SUM_BYTES) {
      throw new IOException("%s was cut short at unit %d, byte %d".formatted(key, unit, filled));
    }
    if ((int) sum.getValue() != ByteBuffer.wrap(start.toByteArray()).getInt()) {
      throw new IOException(key + " did not arrive as it was sent: its checksum differs");
    }
    long bytes = units.stream().mapToLong(DeviceOutputFormat.Described::bytes).sum();
    if (catalog.find(key).isEmpty()) {
      catalog.publish(new DeviceOutput(key, adopted()));
    }
    return bytes;
  }

  private List<DeviceOutput.Unit> adopted() {
    List<DeviceOutput.Unit> made = new ArrayList<>();
    for (int i = 0; i < units.size(); i++) {
      DeviceOutputFormat.Described described = units.get(i);
      made.add(
          new DeviceOutput.Unit(
              tiers.adopt(extents.get(i), described.bytes()),
              described.layouts(),
              described.offsets()));
    }
    extents.clear();
    return made;
  }

  @Override
  public void close() {
    extents.forEach(arena::free);
    extents.clear();
  }
}
