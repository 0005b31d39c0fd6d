package io.weft.shuffle.fetch;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.weft.memory.Memory;
import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.Checksum;
import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.shuffle.store.ChunkDecryptor;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat.ChunkName;
import io.weft.shuffle.store.EncryptionKey;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.zip.CRC32C;

/**
 * Writes the bytes of a stream to the memory of its chunks, each at a multiple of 64. Plain bytes
 * are written as they arrive. A compressed chunk is decompressed when all of it has arrived. An
 * encrypted chunk is decrypted piece by piece. A chunk counts as arrived after its checksum was
 * verified. Guarded by its request.
 */
final class ChunkReceiver implements AutoCloseable {
  private static final long ALIGNMENT = 64;

  /** A shorter read into place is not worth a system call of its own. */
  private static final int MIN_BUFFER_BYTES = 64 << 10;

  /** Bytes of one read stay in the processor's cache until their checksum is computed. */
  private static final int MAX_BUFFER_BYTES = 512 << 10;

  private final ChunkTable table;
  private final ChunkNames names;
  private final Compression compression;
  private final long[] offset;
  private final long end;
  private final ChunkDecryptor decryptor;
  private final CRC32C crc = new CRC32C();
  private int chunk;
  private int filled;

  /** The compressed bytes of a chunk that arrives in several pieces; else null. */
  private ByteBuf gathered;

  /**
   * Starts before the first chunk.
   *
   * @param compression that was requested
   * @param key of encrypted chunks
   */
  ChunkReceiver(BlocksOpened answer, Compression compression, Optional<EncryptionKey> key) {
    this.table = answer.table();
    this.names = new ChunkNames(answer);
    this.compression = compression;
    this.decryptor = new ChunkDecryptor(key);
    this.offset = new long[table.count()];
    long at = 0;
    for (int i = 0; i < offset.length; i++) {
      offset[i] = at;
      at += (table.length(i) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    this.end = at;
  }

  /** The offset of a chunk. */
  long offset(int index) {
    return offset[index];
  }

  /** The bytes of all chunks, each rounded up to 64. */
  long end() {
    return end;
  }

  /** The number of complete chunks. */
  int arrived() {
    return chunk;
  }

  /**
   * Returns the memory for the next bytes of the stream, as far as it is contiguous.
   *
   * @return null if it is short, or if the next chunk is compressed or encrypted
   */
  ByteBuffer nextBuffer(ByteBuffer target) {
    if (chunk == offset.length || !table.isPlain(chunk)) {
      return null;
    }
    long from = offset[chunk] + filled;
    long to = offset[chunk] + table.length(chunk);
    for (int i = chunk + 1; i < offset.length && to - from < MAX_BUFFER_BYTES; i++) {
      if (offset[i] != to || !table.isPlain(i)) {
        break;
      }
      to += table.length(i);
    }
    long length = Math.min(to - from, MAX_BUFFER_BYTES);
    return length < MIN_BUFFER_BYTES ? null : target.slice((int) from, (int) length);
  }

  /**
   * Consumes bytes of the data until all chunks are complete. Bytes that were read into {@link
   * #nextBuffer} are not copied.
   *
   * @throws ChecksumException if a chunk is damaged; the chunks before it have arrived
   */
  void receive(ByteBuffer data, ByteBuffer target) throws IOException {
    while (data.hasRemaining() && chunk < offset.length) {
      int sent = table.sentBytes(chunk);
      int count = Math.min(data.remaining(), sent - filled);
      ByteBuffer piece = data.slice(data.position(), count);
      data.position(data.position() + count);
      boolean last = filled + count == sent;
      if (table.isCompressed(chunk)) {
        receiveCompressed(piece, last, target);
      } else if (table.isEncrypted(chunk)) {
        receiveEncrypted(piece, last, target);
      } else {
        int place = (int) (offset[chunk] + filled);
        if (!isThere(piece, target, place)) {
          target.put(place, piece, 0, count);
        }
        sum(piece);
      }
      filled += count;
      if (last) {
        verify();
        chunk++;
        filled = 0;
      }
    }
  }

  private static boolean isThere(ByteBuffer piece, ByteBuffer target, int place) {
    return piece.isDirect() && Memory.addressOf(piece) == Memory.addressOf(target) + place;
  }

  /** Updates the checksum right after the copy, while the bytes are in the processor's cache. */
  private void sum(ByteBuffer bytes) {
    if (table.checksum(chunk) != Checksum.NONE) {
      crc.update(bytes);
    }
  }

  private void receiveCompressed(ByteBuffer piece, boolean last, ByteBuffer target)
      throws ChecksumException {
    ByteBuffer compressed = piece;
    if (gathered != null || !last) {
      if (gathered == null) {
        gathered = PooledByteBufAllocator.DEFAULT.directBuffer(table.sentBytes(chunk));
      }
      gathered.writeBytes(piece);
      compressed = gathered.nioBuffer();
    }
    if (last) {
      ByteBuffer whole = target.slice((int) offset[chunk], (int) table.length(chunk));
      compression.decompressWhole(compressed, whole);
      sum(whole);
      close();
    }
  }

  private void receiveEncrypted(ByteBuffer piece, boolean last, ByteBuffer target)
      throws IOException {
    if (filled == 0) {
      decryptor.begin(
          names.of(chunk), target.slice((int) offset[chunk], (int) table.length(chunk)));
    }
    sum(piece.duplicate());
    try {
      decryptor.accept(piece);
      if (last) {
        decryptor.end();
      }
    } catch (ChecksumException e) {
      throw new ChecksumException(what() + ": " + e.getMessage());
    }
  }

  private String what() {
    return "chunk " + chunk + " of the answer (partition " + table.partition(chunk) + ")";
  }

  private void verify() throws ChecksumException {
    int promised = table.checksum(chunk);
    int found = (int) crc.getValue();
    crc.reset();
    if (promised != Checksum.NONE && promised != found) {
      throw new ChecksumException(what(), promised, found);
    }
  }

  /** Frees the buffer. Can be repeated. */
  @Override
  public void close() {
    if (gathered != null) {
      gathered.release();
      gathered = null;
    }
  }

  /** Computes the names of an answer's chunks from the requested ranges. For one thread. */
  static final class ChunkNames {
    private final BlocksOpened answer;

    /** The number of chunks before the current range. */
    private int before;

    private int range;
    private int chunk;
    private int position;

    ChunkNames(BlocksOpened answer) {
      this.answer = answer;
      this.position = answer.table().firstPosition();
    }

    /**
     * Returns the name of a chunk.
     *
     * @param index at least that of the previous call
     */
    ChunkName of(int index) {
      findRange();
      while (chunk < index) {
        int partition = answer.partition(chunk);
        chunk++;
        boolean sameRange = chunk < before + answer.rangeChunks(range);
        boolean sameBlock = sameRange && answer.partition(chunk) == partition;
        position = sameBlock ? position + 1 : 0;
        findRange();
      }
      BlockKey key = answer.key(range);
      return new ChunkName(key.shuffleId(), key.mapId(), answer.partition(index), position);
    }

    /** Moves to the range of the current chunk. Ranges may be empty. */
    private void findRange() {
      while (chunk >= before + answer.rangeChunks(range)) {
        before += answer.rangeChunks(range);
        range++;
      }
    }
  }
}
