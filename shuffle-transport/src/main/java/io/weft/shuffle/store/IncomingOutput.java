package io.weft.shuffle.store;

import static io.weft.shuffle.peer.ExchangeCounter.BYTES_MIGRATED;
import static io.weft.shuffle.peer.ExchangeCounter.OUTPUTS_MIGRATED;

import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.shuffle.peer.ExchangeCounters;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * Receives a migrated map output into this executor's arena. Buffers the head and the index until
 * the index is complete. Allocates a chunk when its first byte arrives. Closing without {@link
 * #finish} frees everything. For one thread at a time.
 */
public final class IncomingOutput implements AutoCloseable {
  private final BlockCatalog catalog;
  private final BlockKey key;
  private final ExchangeCounters counters;
  private final CRC32C crc = new CRC32C();

  private ByteArrayOutputStream start = new ByteArrayOutputStream(MigrationFormat.HEAD_BYTES);
  private MigrationFormat.MigrationHead head;
  private MapOutput index;
  private MapOutputWriter writer;
  private int partition;
  private int chunk;
  private Extent extent;
  private long filled;

  /** Creates a receiver for this output. */
  public IncomingOutput(BlockCatalog catalog, BlockKey key, ExchangeCounters counters) {
    this.catalog = catalog;
    this.key = key;
    this.counters = counters;
  }

  /**
   * Receives the next bytes. Consumes all of them.
   *
   * @throws IOException if the bytes do not belong to this output, the arena is full, or the
   *     shuffle was removed here
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

  /**
   * Buffers bytes as they arrive, so that a wrong length cannot cause a large allocation. Returns
   * whether all wanted bytes are there.
   */
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
          key + " has " + bytes.remaining() + " or more bytes beyond those in its index");
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
   * Allocates a chunk. An encrypted chunk stays encrypted on disk, because it did not fit into the
   * sender's memory. Never waits, because it runs on an event loop.
   */
  private Extent allocate(long bytes) throws IOException {
    return index.isEncrypted(chunk) ? writer.allocateEncrypted(bytes) : writer.allocateNow(bytes);
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
    if (index.isEncrypted(chunk)) {
      writer.commitEncrypted(partition, extent, index.length(chunk), index.rows(chunk));
    } else {
      writer.commit(partition, extent, filled, index.rows(chunk));
    }
    extent = null;
    filled = 0;
    chunk++;
  }

  /**
   * Publishes the output after its last byte. If it is already published here, drops this copy.
   *
   * @return the bytes of its chunks
   * @throws IOException if bytes are missing or damaged, or the shuffle was removed here
   */
  public long finish() throws IOException {
    if (index == null || chunk < index.chunks()) {
      throw new IOException("%s was truncated at chunk %d, byte %d".formatted(key, chunk, filled));
    }
    if ((int) crc.getValue() != head.checksum()) {
      throw new IOException(key + " was damaged on the way: its checksum is wrong");
    }
    long bytes = MigrationFormat.chunkBytes(index);
    if (!catalog.contains(key)) {
      writer.publish();
      counters.increment(OUTPUTS_MIGRATED);
      counters.add(BYTES_MIGRATED, bytes);
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
