package io.weft.deviceblocks;

import io.netty.handler.stream.ChunkedStream;
import io.weft.catalog.BlockKey;
import io.weft.tcp.PacedRegion;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Objects;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * A map output of this executor's device, as Spark's block transfer sends it to another executor in
 * a migration. Owns nothing: each of its streams holds the tables from its creation until it is
 * released or closed. No stream can be created after the output was removed. Thread-safe.
 */
public final class OutgoingTables extends ManagedBuffer {
  private static final int TLS_PIECE_BYTES = 256 << 10;
  private static final int BYTE_MASK = 0xff;

  private final BlockKey key;
  private final List<DeviceOutput.Unit> units;
  private final ByteBuffer head;
  private final long bytes;

  private OutgoingTables(BlockKey key, List<DeviceOutput.Unit> units, ByteBuffer head, long bytes) {
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
  public static OutgoingTables of(DeviceCatalog catalog, BlockKey key) throws IOException {
    List<DeviceOutput.Unit> units =
        catalog.find(key).orElseThrow(() -> new IOException(key + " is not here")).units();
    ByteBuffer head = TablesFormat.encode(units);
    long bytes = (long) head.remaining() + TablesFormat.SUM_BYTES;
    for (DeviceOutput.Unit unit : units) {
      bytes += unit.memory().bytes();
    }
    return new OutgoingTables(key, units, head, bytes);
  }

  @Override
  public long size() {
    return bytes;
  }

  /** Opens the bytes from the start. The caller closes them. */
  private MovingPieces open() throws IOException {
    try {
      return new MovingPieces(head.duplicate(), units);
    } catch (IllegalStateException e) {
      throw new IOException(key + " was removed", e);
    }
  }

  @Override
  public Object convertToNetty() throws IOException {
    MovingPieces pieces = open();
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
    private final MovingPieces pieces;

    Input(MovingPieces pieces) {
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
}
