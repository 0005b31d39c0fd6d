package io.weft.exchange;

import io.weft.encryption.SealingKey;
import java.util.Objects;

/**
 * How an executor encrypts what it writes to its local folders.
 *
 * @param key of the application; the same on all its executors
 * @param privateBytes most memory of this process for chunks on their way to and from the local
 *     folders, while shared memory is full; at least the size of a segment
 */
public record DiskEncryption(SealingKey key, long privateBytes) {
  public DiskEncryption {
    Objects.requireNonNull(key, "key");
    if (privateBytes < 1) {
      throw new IllegalArgumentException("privateBytes " + privateBytes + " is not positive");
    }
  }
}
