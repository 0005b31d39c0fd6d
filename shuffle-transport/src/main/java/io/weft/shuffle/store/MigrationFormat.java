package io.weft.shuffle.store;

import io.weft.shuffle.store.Checksum.ChecksumException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;

/**
 * The format of the stream of a migrated map output. All numbers are little-endian.
 *
 * <pre>
 *   0               4               8               12              16
 *  +---------------+---------------+---------------+---------------+
 *  | magic "WFTO"  | version       | index bytes I | checksum      |
 *  +---------------+---------------+---------------+---------------+
 *  | index, as {@link MapOutputFormat} writes it                   |  I
 *  +---------------------------------------------------------------+
 *  | chunks 0..C-1, back to back                                   |
 *  +---------------------------------------------------------------+
 * </pre>
 *
 * The checksum is the CRC32C of all chunks; the index has its own. The receiver ignores the
 * locations in the index and allocates its own memory. Encrypted chunks are sent encrypted.
 */
final class MigrationFormat {
  static final int HEAD_BYTES = 16;

  private static final int VERSION = 1;
  private static final int MAGIC = 0x4f544657;

  private MigrationFormat() {}

  /**
   * The head of a stream.
   *
   * @param indexBytes of the index, at most {@link MapOutputFormat#MAX_BYTES}
   * @param checksum of the chunks
   */
  record MigrationHead(int indexBytes, int checksum) {}

  /**
   * Encodes the head and index of an output. Reads every byte of its chunks.
   *
   * @throws ChecksumException if a chunk is damaged, because a new checksum would hide the damage
   */
  static ByteBuffer encode(OwnedOutput output) throws ChecksumException {
    ByteBuffer index = MapOutputFormat.encode(output.index());
    ByteBuffer bytes =
        ByteBuffer.allocate(HEAD_BYTES + index.remaining()).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putInt(MAGIC).putInt(VERSION).putInt(index.remaining()).putInt(checksum(output));
    return bytes.put(index).flip();
  }

  private static int checksum(OwnedOutput output) throws ChecksumException {
    CRC32C crc = new CRC32C();
    for (int chunk = 0; chunk < output.index().chunks(); chunk++) {
      ByteBuffer bytes = output.view(chunk);
      verify(output.index(), chunk, bytes);
      crc.update(bytes);
    }
    return (int) crc.getValue();
  }

  /** Verifies the checksum of a chunk on disk. */
  private static void verify(MapOutput index, int chunk, ByteBuffer bytes)
      throws ChecksumException {
    int promised = index.checksum(chunk);
    if (promised != Checksum.NONE) {
      int found = Checksum.of(bytes);
      if (found != promised) {
        throw new ChecksumException(
            "chunk " + chunk + " of " + index.key() + ", on disk", promised, found);
      }
    }
  }

  /** The bytes of all chunks in the stream. */
  static long chunkBytes(MapOutput output) {
    return output.storedBytes();
  }

  /**
   * Decodes a head.
   *
   * @param bytes the {@link #HEAD_BYTES} bytes of the head
   * @throws IOException if it is not a head of this version
   */
  static MigrationHead decode(byte[] bytes) throws IOException {
    ByteBuffer head = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int magic = head.getInt();
    int version = head.getInt();
    int indexBytes = head.getInt();
    if (magic != MAGIC || version != VERSION) {
      throw new IOException(
          "not a migrated map output of version %d: magic %x, version %d"
              .formatted(VERSION, magic, version));
    }
    if (indexBytes < 1 || indexBytes > MapOutputFormat.MAX_BYTES) {
      throw new IOException("a migrated map output with an index of " + indexBytes + " bytes");
    }
    return new MigrationHead(indexBytes, head.getInt());
  }
}
