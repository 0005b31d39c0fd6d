package io.weft.integrity;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * Computes CRC32C (Castagnoli) checksums. The JVM uses the instructions of x86 and Arm. The value 0
 * means "not checked", so contents whose real sum is 0 (1 in 2^32) are not checked.
 */
public final class Checksum {
  /** The value for bytes without a checksum. */
  public static final int NONE = 0;

  private Checksum() {}

  /** Returns the checksum from the buffer's position to its limit. Changes neither. */
  public static int of(ByteBuffer bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate());
    return (int) crc.getValue();
  }
}
