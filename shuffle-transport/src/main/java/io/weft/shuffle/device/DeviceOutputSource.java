package io.weft.shuffle.device;

import io.netty.handler.stream.ChunkedStream;
import io.weft.device.cuda.HostCopy;
import io.weft.device.cuda.TieredHold;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput.Unit;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.PacedRegion;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.zip.CRC32C;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * A map output of this executor's device, as Spark's block transfer sends it to another executor in
 * a migration. Owns nothing: each of its streams holds the tables from its creation until it is
 * released or closed. No stream can be created after the output was removed. Thread-safe.
 */
public final class DeviceOutputSource extends ManagedBuffer {
  private static final int TLS_PIECE_BYTES = 256 << 10;
  private static final int BYTE_MASK = 0xff;

  private final BlockKey key;
  private final List<DeviceOutput.Unit> units;
  private final ByteBuffer head;
  private final long bytes;

  private DeviceOutputSource(
      BlockKey key, List<DeviceOutput.Unit> units, ByteBuffer head, long bytes) {
    this.key = key;
    this.units = units;
    this.head = head;
    this.bytes = bytes;
  }

  /**
   * Prepares an output.
   *
   * @throws IOException if the catalog has no output with this key
   */
  public static DeviceOutputSource of(DeviceCatalog catalog, BlockKey key) throws IOException {
    List<DeviceOutput.Unit> units =
        catalog.find(key).orElseThrow(() -> new IOException(key + " is not here")).units();
    ByteBuffer head = DeviceOutputFormat.encode(units);
    long bytes = (long) head.remaining() + DeviceOutputFormat.SUM_BYTES;
    for (DeviceOutput.Unit unit : units) {
      bytes += unit.memory().bytes();
    }
    return new DeviceOutputSource(key, units, head, bytes);
  }

  @Override
  public long size() {
    return bytes;
  }

  /** Opens the bytes from the start. The caller closes them. */
  private MigrationPieces open() throws IOException {
    try {
      return new MigrationPieces(head.duplicate(), units);
    } catch (IllegalStateException e) {
      throw new IOException(key + " was removed", e);
    }
  }

  @Override
  public Object convertToNetty() throws IOException {
    MigrationPieces pieces = open();
    return new PacedRegion(bytes) {
      @Override
      protected ByteBuffer from(long position) {
        return pieces.current();
      }

      @Override
      protected void deallocate() {
        pieces.close();
      }
    };
  }

  @Override
  public Object convertToNettyForSsl() throws IOException {
    return new ChunkedStream(createInputStream(), TLS_PIECE_BYTES);
  }

  @Override
  public InputStream createInputStream() throws IOException {
    return new Input(open());
  }

  @Override
  public ByteBuffer nioByteBuffer() throws IOException {
    try (InputStream input = createInputStream()) {
      return ByteBuffer.wrap(input.readAllBytes());
    }
  }

  /** No reference count: the streams own the memory that they need. */
  @Override
  public ManagedBuffer retain() {
    return this;
  }

  @Override
  public ManagedBuffer release() {
    return this;
  }

  @Override
  public String toString() {
    return "migration of " + key + " from a device, " + bytes + " bytes";
  }

  /** The pieces as an input stream. */
  private static final class Input extends InputStream {
    private final MigrationPieces pieces;

    Input(MigrationPieces pieces) {
      this.pieces = pieces;
    }

    @Override
    public int read() {
      ByteBuffer piece = pieces.current();
      return piece == null ? -1 : piece.get() & BYTE_MASK;
    }

    @Override
    public int read(byte[] into, int offset, int length) {
      Objects.checkFromIndexSize(offset, length, into.length);
      ByteBuffer piece = length == 0 ? null : pieces.current();
      if (piece == null) {
        return length == 0 ? 0 : -1;
      }
      int count = Math.min(length, piece.remaining());
      piece.get(into, offset, count);
      return count;
    }

    @Override
    public void close() {
      pieces.close();
    }
  }

  /**
   * The bytes of a device's map output, in the order of its stream. Holds the units that are not
   * read yet, and keeps a host copy of one unit at a time. Used by one thread at a time.
   */
  static final class MigrationPieces implements AutoCloseable {
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
    MigrationPieces(ByteBuffer head, List<Unit> units) {
      this.piece = head;
      sum.update(
          head.slice(
              DeviceOutputFormat.HEAD_BYTES, head.remaining() - DeviceOutputFormat.HEAD_BYTES));
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
      return ByteBuffer.allocate(DeviceOutputFormat.SUM_BYTES).putInt((int) sum.getValue()).flip();
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
  static final class DeviceOutputFormat {
    static final int HEAD_BYTES = 3 * Integer.BYTES;
    static final int SUM_BYTES = Integer.BYTES;

    private static final int MAGIC = 0x57465454;
    private static final int VERSION = 1;
    private static final int MAX_INDEX_BYTES = 1 << 28;
    private static final int MAX_UNITS = 1 << 20;
    private static final int MAX_PARTITIONS = 1 << 24;
    private static final int SMALLEST_PARTITION = Long.BYTES + Integer.BYTES;
    private static final long MAX_UNIT_BYTES = Integer.MAX_VALUE - 63L;

    private DeviceOutputFormat() {}

    /** A unit in the index: its bytes, and the layouts and offsets of its tables. */
    @SuppressWarnings("ArrayRecordComponent") // Never compared.
    record Described(long bytes, List<TableLayout> layouts, long[] offsets) {}

    /** Encodes the head and the index. */
    static ByteBuffer encode(List<Unit> units) {
      byte[] index = DeviceBlockMessages.message(out -> write(units, out));
      if (index.length > MAX_INDEX_BYTES) {
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
      if (indexBytes < Integer.BYTES || indexBytes > MAX_INDEX_BYTES) {
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
        int count = count(in.readInt(), MAX_UNITS, "units");
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
      if (bytes < 1 || bytes > MAX_UNIT_BYTES) {
        throw new IOException("a unit of " + bytes + " bytes");
      }
      int most = Math.min(MAX_PARTITIONS, in.available() / SMALLEST_PARTITION);
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
}
