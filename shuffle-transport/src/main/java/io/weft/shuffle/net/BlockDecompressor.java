package io.weft.shuffle.net;

import io.weft.shuffle.store.Checksum.ChecksumException;
import java.nio.ByteBuffer;

/** Decompresses chunks into memory of exactly their size. Stateless. */
public final class BlockDecompressor {
  private BlockDecompressor() {}

  /**
   * Decompresses all of one buffer into all of another one. Writes nothing beyond the target's end,
   * for any input.
   *
   * @param compressed from its position to its limit
   * @param target a direct buffer of exactly the chunk's size
   * @throws ChecksumException if the bytes are damaged or have another size
   */
  public static void decompress(Compression compression, ByteBuffer compressed, ByteBuffer target)
      throws ChecksumException {
    long bytes = compression.decompress(compressed, target);
    if (bytes != target.capacity()) {
      throw new ChecksumException(
          "%d compressed bytes (%s) decompress to %s instead of %d bytes"
              .formatted(
                  compressed.remaining(),
                  compression,
                  bytes < 0 ? "nothing" : Long.toString(bytes),
                  target.capacity()));
    }
  }
}
