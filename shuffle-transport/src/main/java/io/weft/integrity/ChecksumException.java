package io.weft.integrity;

import java.io.IOException;

/** Thrown if bytes are not the bytes that were written or sent. */
public final class ChecksumException extends IOException {
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
