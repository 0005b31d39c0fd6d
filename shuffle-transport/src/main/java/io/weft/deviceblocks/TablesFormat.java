package io.weft.deviceblocks;

import io.weft.deviceblocks.DeviceOutput.Unit;
import io.weft.table.TableLayout;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * The stream format of a device's map output that migrates to another executor. All numbers are
 * big-endian.
 *
 * <pre>
 *   int magic "WFTT" | int version | int index bytes I
 *   index: int units | for each: long bytes, int partitions |
 *                      for each of them: long offset, int length, layout            I
 *   bytes of all units, back to back
 *   int CRC32C of index and units
 * </pre>
 *
 * Stateless.
 */
final class TablesFormat {
  static final int HEAD_BYTES = 3 * Integer.BYTES;
  static final int SUM_BYTES = Integer.BYTES;

  private static final int MAGIC = 0x57465454;
  private static final int VERSION = 1;
  private static final int MOST_INDEX_BYTES = 1 << 28;
  private static final int MOST_UNITS = 1 << 20;
  private static final int MOST_PARTITIONS = 1 << 24;
  private static final int SMALLEST_PARTITION = Long.BYTES + Integer.BYTES;
  private static final long MOST_UNIT_BYTES = Integer.MAX_VALUE - 63L;

  private TablesFormat() {}

  /** A unit in the index: its bytes, and the layouts and offsets of its tables. */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  record Described(long bytes, List<TableLayout> layouts, long[] offsets) {}

  /** Encodes the head and the index. */
  static ByteBuffer encode(List<Unit> units) {
    byte[] index = BlockQuestions.message(out -> write(units, out));
    if (index.length > MOST_INDEX_BYTES) {
      throw new IllegalStateException("an index of " + index.length + " bytes is too large");
    }
    ByteBuffer bytes = ByteBuffer.allocate(HEAD_BYTES + index.length);
    return bytes.putInt(MAGIC).putInt(VERSION).putInt(index.length).put(index).flip();
  }

  private static void write(List<Unit> units, DataOutputStream out) throws IOException {
    out.writeInt(units.size());
    for (Unit unit : units) {
      out.writeLong(unit.memory().bytes());
      out.writeInt(unit.layouts().size());
      for (int partition = 0; partition < unit.layouts().size(); partition++) {
        byte[] layout = unit.layouts().get(partition).toBytes();
        out.writeLong(unit.offsets()[partition]);
        out.writeInt(layout.length);
        out.write(layout);
      }
    }
  }

  /**
   * Reads a head.
   *
   * @return bytes of the index
   * @throws IOException if the bytes are not a head, or have another version
   */
  static int decodeHead(byte[] bytes) throws IOException {
    ByteBuffer head = ByteBuffer.wrap(bytes);
    int magic = head.getInt();
    int version = head.getInt();
    int indexBytes = head.getInt();
    if (magic != MAGIC || version != VERSION) {
      throw new IOException(
          "not a device map output of version %d: magic %x, version %d"
              .formatted(VERSION, magic, version));
    }
    if (indexBytes < Integer.BYTES || indexBytes > MOST_INDEX_BYTES) {
      throw new IOException("a map output of a device with an index of " + indexBytes + " bytes");
    }
    return indexBytes;
  }

  /**
   * Reads an index.
   *
   * @throws IOException if the index is damaged, or a table is outside of its unit
   */
  static List<Described> decodeIndex(byte[] bytes) throws IOException {
    List<Described> units = new ArrayList<>();
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      int count = count(in.readInt(), MOST_UNITS, "units");
      for (int i = 0; i < count; i++) {
        units.add(unit(in));
      }
      if (in.available() > 0) {
        throw new IOException("the index of a device's map output does not end with its units");
      }
    } catch (IllegalArgumentException e) {
      throw new IOException("the layout of a table is damaged", e);
    }
    return units;
  }

  private static Described unit(DataInputStream in) throws IOException {
    long bytes = in.readLong();
    if (bytes < 1 || bytes > MOST_UNIT_BYTES) {
      throw new IOException("a unit of " + bytes + " bytes");
    }
    int most = Math.min(MOST_PARTITIONS, in.available() / SMALLEST_PARTITION);
    int partitions = count(in.readInt(), most, "partitions");
    List<TableLayout> layouts = new ArrayList<>();
    long[] offsets = new long[partitions];
    for (int partition = 0; partition < partitions; partition++) {
      offsets[partition] = in.readLong();
      byte[] layout = in.readNBytes(count(in.readInt(), in.available(), "bytes of a layout"));
      layouts.add(TableLayout.fromBytes(layout, bytes));
      requireWithin(offsets[partition], layouts.get(partition), bytes);
    }
    return new Described(bytes, layouts, offsets);
  }

  private static void requireWithin(long offset, TableLayout layout, long bytes)
      throws IOException {
    boolean fits = offset >= 0 && offset <= bytes && layout.bytes() <= bytes - offset;
    if (layout.rows() > 0 && !fits) {
      throw new IOException(
          "a table of %d bytes at %d of a unit of %d".formatted(layout.bytes(), offset, bytes));
    }
  }

  private static int count(int count, int most, String what) throws IOException {
    if (count < 0 || count > most) {
      throw new IOException(what + ": " + count + " is not 0 to " + most);
    }
    return count;
  }
}
