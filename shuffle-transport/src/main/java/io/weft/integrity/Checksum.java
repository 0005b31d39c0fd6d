package io.weft.integrity;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * CRC32C (Castagnoli), for which x86 and Arm have an instruction that the JVM uses. 0 says that
 * nothing was checked; the one in four thousand million contents that have this sum go unchecked.
 */
public final class Checksum {
  /** Of bytes that were not checked. */
  public static final int NONE = 0;

  private Checksum() {}

  /** The sum of a buffer from its position to its limit, neither of which changes. */
  public static int of(ByteBuffer bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate());
    return (int) crc.getValue();
  }
}
