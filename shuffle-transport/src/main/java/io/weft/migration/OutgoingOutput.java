package io.weft.migration;

import io.netty.handler.stream.ChunkedStream;
import io.weft.catalog.BlockCatalog;
import io.weft.catalog.BlockKey;
import io.weft.catalog.OwnedBlocks;
import io.weft.catalog.OwnedOutput;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
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
    try (OwnedBlocks hold = catalog.hold(key.shuffleId())) {
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
    return new HeldRegion(open(), bytes);
  }

  @Override
  public Object convertToNettyForSsl() throws IOException {
    return new ChunkedStream(createInputStream(), TLS_PIECE_BYTES);
  }

  @Override
  public InputStream createInputStream() throws IOException {
    return new HeldInput(open());
  }

  @Override
  public ByteBuffer nioByteBuffer() throws IOException {
    try (InputStream input = createInputStream()) {
      return ByteBuffer.wrap(input.readAllBytes());
    }
  }

  /** Opens the bytes from the start. The caller closes them. */
  private HeldPieces open() throws IOException {
    OwnedBlocks hold = catalog.hold(key.shuffleId());
    HeldPieces pieces = null;
    try {
      pieces = new HeldPieces(hold, head.duplicate(), hold.owned(key));
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
}
