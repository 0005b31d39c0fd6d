package io.weft.exchange;

import io.weft.encryption.SealingKey;
import io.weft.memory.PrivateMemory;
import java.util.Objects;

/**
 * The encryption of an executor's local folders.
 *
 * @param key of the application, the same on all its executors
 * @param memory private memory of this process for plain bytes while shared memory is full, for
 *     example chunks to be encrypted; at least two segments
 */
public record DiskEncryption(SealingKey key, PrivateMemory memory) {
  public DiskEncryption {
    Objects.requireNonNull(key, "key");
    if (memory.bytes() < 1) {
      throw new IllegalArgumentException("encryption needs private memory, but its size is 0");
    }
  }
}
