package io.weft.migration;

import static io.weft.metrics.ExchangeCounter.BYTES_ADOPTED;
import static io.weft.metrics.ExchangeCounter.OUTPUTS_ADOPTED;

import io.weft.catalog.BlockCatalog;
import io.weft.catalog.BlockKey;
import io.weft.catalog.MapOutput;
import io.weft.catalog.MapOutputFormat;
import io.weft.catalog.MapOutputWriter;
import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.metrics.ExchangeCounters;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * Takes a migrated map output out of its stream into this executor's arena. What has arrived of the
 * head and the index is kept apart until the index is whole; a chunk is allocated with its first
 * byte. Closing without {@link #finish} frees everything. For one thread at a time.
 */
public final class IncomingOutput implements AutoCloseable {
  private final BlockCatalog catalog;
  private final BlockKey key;
  private final ExchangeCounters counters;
  private final CRC32C crc = new CRC32C();

  private ByteArrayOutputStream start = new ByteArrayOutputStream(MigrationFormat.HEAD_BYTES);
  private MigrationFormat.Head head;
  private MapOutput index;
  private MapOutputWriter writer;
  private int partition;
  private int chunk;
  private Extent extent;
  private long filled;

  /** Expects this output, of which nothing has arrived yet. */
  public IncomingOutput(BlockCatalog catalog, BlockKey key, ExchangeCounters counters) {
    this.catalog = catalog;
    this.key = key;
    this.counters = counters;
  }

  /**
   * Takes the next bytes, all of them.
   *
   * @throws IOException if they are not those of this output, the arena is full, or the shuffle was
   *     removed here
   */
  public void append(ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      if (head == null) {
        if (collect(bytes, MigrationFormat.HEAD_BYTES)) {
          head = MigrationFormat.decode(start.toByteArray());
          start.reset();
        }
      } else if (index == null) {
        if (collect(bytes, head.indexBytes())) {
          open(MapOutputFormat.decode(ByteBuffer.wrap(start.toByteArray()), key));
        }
      } else {
        fill(bytes);
      }
    }
  }

  /** Grows with what arrives, never by what the head promises; true once it is all there. */
  private boolean collect(ByteBuffer bytes, int wanted) {
    byte[] taken = new byte[Math.min(bytes.remaining(), wanted - start.size())];
    bytes.get(taken);
    start.writeBytes(taken);
    return start.size() == wanted;
  }

  private void open(MapOutput described) throws IOException {
    index = described;
    start = null;
    writer = catalog.adopt(key, described.partitions());
  }

  private void fill(ByteBuffer bytes) throws IOException {
    if (chunk == index.chunks()) {
      throw new IOException(
          key + " has " + bytes.remaining() + " bytes more than its index says, or still more");
    }
    if (extent == null) {
      extent = allocate(index.storedBytes(chunk));
    }
    int count = (int) Math.min(bytes.remaining(), index.storedBytes(chunk) - filled);
    ByteBuffer piece = bytes.slice().limit(count);
    crc.update(piece.duplicate());
    copy(piece, extent.address() + filled);
    bytes.position(bytes.position() + count);
    filled += count;
    if (filled == index.storedBytes(chunk)) {
      commit();
    }
  }

  /**
   * What comes sealed stays sealed: it was too much for memory where it comes from. Never waits, as
   * an event loop brings the bytes.
   */
  private Extent allocate(long bytes) throws IOException {
    return index.isSealed(chunk) ? writer.allocateSealed(bytes) : writer.allocateNow(bytes);
  }

  private static void copy(ByteBuffer piece, long to) {
    if (piece.isDirect()) {
      Memory.copy(Memory.addressOf(piece) + piece.position(), to, piece.remaining());
      return;
    }
    byte[] bytes = new byte[piece.remaining()];
    piece.get(bytes);
    Memory.copyFrom(bytes, Memory.BYTE_ARRAY, to, bytes.length);
  }

  private void commit() {
    while (index.firstChunk(partition + 1) <= chunk) {
      partition++;
    }
    if (index.isSealed(chunk)) {
      writer.commitSealed(partition, extent, index.length(chunk), index.rows(chunk));
    } else {
      writer.commit(partition, extent, filled, index.rows(chunk));
    }
    extent = null;
    filled = 0;
    chunk++;
  }

  /**
   * Publishes the output here, after its last byte; where it is here already, drops this copy.
   *
   * @return bytes of its chunks
   * @throws IOException if bytes are missing or not as they were sent, or the shuffle was removed
   *     here meanwhile
   */
  public long finish() throws IOException {
    if (index == null || chunk < index.chunks()) {
      throw new IOException("%s was cut short at chunk %d, byte %d".formatted(key, chunk, filled));
    }
    if ((int) crc.getValue() != head.checksum()) {
      throw new IOException(key + " did not arrive as it was sent: its checksum differs");
    }
    long bytes = MigrationFormat.chunkBytes(index);
    if (!catalog.contains(key)) {
      writer.publish();
      counters.increment(OUTPUTS_ADOPTED);
      counters.add(BYTES_ADOPTED, bytes);
    }
    return bytes;
  }

  @Override
  public void close() {
    if (writer != null) {
      writer.close();
    }
  }
}
