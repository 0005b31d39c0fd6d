package io.weft.integrity;

import java.io.IOException;

/** Bytes are not those that were written or sent. */
public final class ChecksumException extends IOException {
  private static final long serialVersionUID = 1L;

  /**
   * Names both sums.
   *
   * @param what the bytes are of
   * @param promised the sum made when they were written or sent
   * @param found the sum of what was read
   */
  public ChecksumException(String what, int promised, int found) {
    this("%s: its bytes have CRC32C %08x, it was %08x".formatted(what, found, promised));
  }

  /** Bytes that have no sum of their own, as they cannot be unpacked. */
  public ChecksumException(String message) {
    super(message);
  }
}
