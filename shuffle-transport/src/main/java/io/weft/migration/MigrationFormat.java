package io.weft.migration;

import io.weft.catalog.MapOutput;
import io.weft.catalog.MapOutputFormat;
import io.weft.catalog.OwnedOutput;
import io.weft.integrity.Checksum;
import io.weft.integrity.ChecksumException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;

/**
 * The stream of a migrated map output. All numbers are little-endian.
 *
 * <pre>
 *   0               4               8               12              16
 *  +---------------+---------------+---------------+---------------+
 *  | magic "WFTM"  | version       | index bytes I | checksum      |
 *  +---------------+---------------+---------------+---------------+
 *  | index, as {@link MapOutputFormat} writes it                   |  I
 *  +---------------------------------------------------------------+
 *  | chunks 0..C-1, back to back                                   |
 *  +---------------------------------------------------------------+
 * </pre>
 *
 * The checksum is the CRC32C of all chunks; the index has its own. Where the index says that chunks
 * lie means nothing to the receiver, which places them anew. Chunks that lie sealed are sent
 * sealed.
 */
final class MigrationFormat {
  static final int HEAD_BYTES = 16;

  private static final int VERSION = 1;
  private static final int MAGIC = 0x4d544657;

  private MigrationFormat() {}

  /**
   * What a stream begins with.
   *
   * @param indexBytes of the index, at most {@link MapOutputFormat#MOST_BYTES}
   * @param checksum of the chunks
   */
  record Head(int indexBytes, int checksum) {}

  /**
   * Head and index of an output, ready to be read. Looks at every byte of its chunks.
   *
   * @throws ChecksumException if a chunk is not what was written any more; what is wrong here must
   *     not become right elsewhere
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

  /** Chunks on disk have a sum of their own. */
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

  /** Bytes of all chunks, as they are sent. */
  static long chunkBytes(MapOutput output) {
    return output.storedBytes();
  }

  /**
   * Reads a head.
   *
   * @param bytes of {@link #HEAD_BYTES} from their start
   * @throws IOException if it is none, or of another version
   */
  static Head decode(byte[] bytes) throws IOException {
    ByteBuffer head = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int magic = head.getInt();
    int version = head.getInt();
    int indexBytes = head.getInt();
    if (magic != MAGIC || version != VERSION) {
      throw new IOException(
          "no migrated map output of version %d: magic %x, version %d"
              .formatted(VERSION, magic, version));
    }
    if (indexBytes < 1 || indexBytes > MapOutputFormat.MOST_BYTES) {
      throw new IOException("a migrated map output with an index of " + indexBytes + " bytes");
    }
    return new Head(indexBytes, head.getInt());
  }
}
