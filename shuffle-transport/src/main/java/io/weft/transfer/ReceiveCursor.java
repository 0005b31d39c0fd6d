package io.weft.transfer;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.weft.encryption.ChunkOpener;
import io.weft.encryption.SealingKey;
import io.weft.integrity.Checksum;
import io.weft.integrity.ChecksumException;
import io.weft.memory.Memory;
import io.weft.wire.BlocksOpened;
import io.weft.wire.ChunkTable;
import io.weft.wire.Compression;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Optional;
import java.util.zip.CRC32C;

/**
 * Lays the chunks of an answer out in memory, each at a multiple of 64, and puts the bytes of the
 * stream there as they come: at once, for a packed chunk as soon as all of it is there, and for a
 * sealed one piece by piece. A chunk has arrived when its checksum was found right. Guarded by its
 * transfer.
 */
final class ReceiveCursor implements AutoCloseable {
  private static final long ALIGNMENT = 64;

  /** Reading less than this into its place is not worth a system call of its own. */
  private static final int LEAST_ROOM = 64 << 10;

  /** What was read stays in the processor's cache until its checksum is computed. */
  private static final int MOST_ROOM = 512 << 10;

  private final ChunkTable table;
  private final ChunkNames names;
  private final Compression compression;
  private final long[] offset;
  private final long end;
  private final ChunkOpener opener;
  private final CRC32C crc = new CRC32C();
  private int chunk;
  private int filled;

  /** Packed bytes of the chunk that is arriving; null unless they came in several pieces. */
  private ByteBuf gathered;

  /**
   * Starts before the first chunk.
   *
   * @param compression that was asked for
   * @param key of chunks that come sealed
   */
  ReceiveCursor(BlocksOpened answer, Compression compression, Optional<SealingKey> key) {
    this.table = answer.table();
    this.names = new ChunkNames(answer);
    this.compression = compression;
    this.opener = new ChunkOpener(key);
    this.offset = new long[table.count()];
    long at = 0;
    for (int i = 0; i < offset.length; i++) {
      offset[i] = at;
      at += (table.length(i) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    this.end = at;
  }

  /** Where a chunk starts. */
  long offset(int index) {
    return offset[index];
  }

  /** Bytes that the chunks take up, rounded up to 64. */
  long end() {
    return end;
  }

  /** How many chunks are whole. */
  int arrived() {
    return chunk;
  }

  /**
   * Where the bytes that come next belong, as far as these places follow on one another.
   *
   * @return null if that is not far, or what comes next is packed or sealed
   */
  ByteBuffer room(ByteBuffer target) {
    if (chunk == offset.length || !table.isSentAsItIs(chunk)) {
      return null;
    }
    long from = offset[chunk] + filled;
    long to = offset[chunk] + table.length(chunk);
    for (int i = chunk + 1; i < offset.length && to - from < MOST_ROOM; i++) {
      if (offset[i] != to || !table.isSentAsItIs(i)) {
        break;
      }
      to += table.length(i);
    }
    long length = Math.min(to - from, MOST_ROOM);
    return length < LEAST_ROOM ? null : target.slice((int) from, (int) length);
  }

  /**
   * Takes bytes out of the data as long as a chunk wants some. Those that are in the {@link #room}
   * for them already are left there.
   *
   * @throws ChecksumException if a chunk is not what was sent; those before it have arrived
   */
  void receive(ByteBuffer data, ByteBuffer target) throws IOException {
    while (data.hasRemaining() && chunk < offset.length) {
      int sent = table.sentBytes(chunk);
      int count = Math.min(data.remaining(), sent - filled);
      ByteBuffer piece = data.slice(data.position(), count);
      data.position(data.position() + count);
      boolean last = filled + count == sent;
      if (table.isPacked(chunk)) {
        receivePacked(piece, last, target);
      } else if (table.isSealed(chunk)) {
        receiveSealed(piece, last, target);
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

  /** Of the bytes that have just been copied, as they are in the processor's cache now. */
  private void sum(ByteBuffer bytes) {
    if (table.checksum(chunk) != Checksum.NONE) {
      crc.update(bytes);
    }
  }

  private void receivePacked(ByteBuffer piece, boolean last, ByteBuffer target)
      throws ChecksumException {
    ByteBuffer packed = piece;
    if (gathered != null || !last) {
      if (gathered == null) {
        gathered = PooledByteBufAllocator.DEFAULT.directBuffer(table.sentBytes(chunk));
      }
      gathered.writeBytes(piece);
      packed = gathered.nioBuffer();
    }
    if (last) {
      ByteBuffer whole = target.slice((int) offset[chunk], (int) table.length(chunk));
      Unpacking.unpack(compression, packed, whole);
      sum(whole);
      close();
    }
  }

  private void receiveSealed(ByteBuffer piece, boolean last, ByteBuffer target) throws IOException {
    if (filled == 0) {
      opener.begin(names.of(chunk), target.slice((int) offset[chunk], (int) table.length(chunk)));
    }
    sum(piece.duplicate());
    try {
      opener.accept(piece);
      if (last) {
        opener.end();
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

  /** Frees what was gathered. Can be repeated. */
  @Override
  public void close() {
    if (gathered != null) {
      gathered.release();
      gathered = null;
    }
  }
}
