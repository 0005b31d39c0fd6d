package io.weft.shuffle.store;

import java.io.IOException;
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

  /** Thrown if bytes are not the bytes that were written or sent. */
  public static final class ChecksumException extends IOException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates an exception that names both checksums.
     *
     * @param what names the bytes
     * @param promised the checksum when they were written or sent
     * @param found the checksum of the bytes that were read
     */
    public ChecksumException(String what, int promised, int found) {
      this("%s: its bytes have CRC32C %08x, it was %08x".formatted(what, found, promised));
    }

    /** Creates an exception for bytes that are damaged in another way. */
    public ChecksumException(String message) {
      super(message);
    }
  }
}
