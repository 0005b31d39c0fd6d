package io.weft.shuffle.store;

import io.netty.handler.stream.ChunkedStream;
import io.weft.shuffle.store.OwnedOutput.OwnedHold;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * Adapts a map output of this executor to Spark's block transfer. Owns nothing. Each stream holds
 * the shuffle from its creation until it is released or closed. After the output is removed, no
 * stream can be created. Thread-safe.
 */
public final class OutgoingOutput extends ManagedBuffer {
  private static final int TLS_PIECE_BYTES = 256 << 10;

  private final BlockCatalog catalog;
  private final BlockKey key;
  private final ByteBuffer head;
  private final long bytes;

  private OutgoingOutput(BlockCatalog catalog, BlockKey key, ByteBuffer head, long bytes) {
    this.catalog = catalog;
    this.key = key;
    this.head = head;
    this.bytes = bytes;
  }

  /**
   * Prepares an output. Reads all of it once for its checksum.
   *
   * @throws IOException if there is no output with this key
   */
  public static OutgoingOutput of(BlockCatalog catalog, BlockKey key) throws IOException {
    try (OwnedHold hold = catalog.hold(key.shuffleId())) {
      OwnedOutput output = hold.owned(key);
      ByteBuffer head = MigrationFormat.encode(output);
      return new OutgoingOutput(
          catalog, key, head, head.remaining() + MigrationFormat.chunkBytes(output.index()));
    }
  }

  @Override
  public long size() {
    return bytes;
  }

  @Override
  public Object convertToNetty() throws IOException {
    return new OutgoingRegion(open(), bytes);
  }

  @Override
  public Object convertToNettyForSsl() throws IOException {
    return new ChunkedStream(createInputStream(), TLS_PIECE_BYTES);
  }

  @Override
  public InputStream createInputStream() throws IOException {
    return new OutgoingInput(open());
  }

  @Override
  public ByteBuffer nioByteBuffer() throws IOException {
    try (InputStream input = createInputStream()) {
      return ByteBuffer.wrap(input.readAllBytes());
    }
  }

  /** Opens the bytes from the start. The caller closes them. */
  private OutgoingPieces open() throws IOException {
    OwnedHold hold = catalog.hold(key.shuffleId());
    OutgoingPieces pieces = null;
    try {
      pieces = new OutgoingPieces(hold, head.duplicate(), hold.owned(key));
      return pieces;
    } finally {
      if (pieces == null) {
        hold.close();
      }
    }
  }

  /** Does nothing, because each stream has its own hold. */
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
    return "migration of " + key + ", " + bytes + " bytes";
  }

  /** The bytes of one stream in order, with the hold on their shuffle. For one thread at a time. */
  static final class OutgoingPieces implements AutoCloseable {
    private final OwnedHold hold;
    private final OwnedOutput output;
    private ByteBuffer piece;
    private int nextChunk;

    /** Takes ownership of the hold. */
    OutgoingPieces(OwnedHold hold, ByteBuffer head, OwnedOutput output) {
      this.hold = hold;
      this.output = output;
      this.piece = head;
    }

    /** The buffer to read next; null at the end. */
    ByteBuffer current() {
      while (!piece.hasRemaining()) {
        if (nextChunk == output.index().chunks()) {
          return null;
        }
        piece = output.view(nextChunk);
        nextChunk++;
      }
      return piece;
    }

    /** Releases the memory. No byte may be read afterwards. Can be repeated. */
    @Override
    public void close() {
      hold.close();
    }
  }

  /** Reads the pieces of a map output as an input stream. For one thread. */
  static final class OutgoingInput extends InputStream {
    private static final int BYTE_MASK = 0xff;

    private final OutgoingPieces pieces;

    OutgoingInput(OutgoingPieces pieces) {
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
      if (length == 0) {
        return 0;
      }
      ByteBuffer piece = pieces.current();
      if (piece == null) {
        return -1;
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

  /** Sends the pieces of a migrated map output. Netty closes it at the end. */
  static final class OutgoingRegion extends PacedRegion {
    private final OutgoingPieces pieces;

    OutgoingRegion(OutgoingPieces pieces, long count) {
      super(count);
      this.pieces = pieces;
    }

    /** Ignores the position, because the pieces are read once and in order. */
    @Override
    protected ByteBuffer from(long position) {
      return pieces.current();
    }

    @Override
    protected void deallocate() {
      pieces.close();
    }
  }
}
