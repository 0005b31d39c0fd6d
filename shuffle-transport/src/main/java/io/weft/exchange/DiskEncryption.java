package io.weft.exchange;

import io.weft.encryption.SealingKey;
import io.weft.memory.PrivateMemory;
import java.util.Objects;

/**
 * How an executor encrypts what it writes to its local folders.
 *
 * @param key of the application; the same on all its executors
 * @param memory of this process for chunks on their way to and from the local folders, and for what
 *     else would lie there, while shared memory is full; at least two segments
 */
public record DiskEncryption(SealingKey key, PrivateMemory memory) {
  public DiskEncryption {
    Objects.requireNonNull(key, "key");
    if (memory.bytes() < 1) {
      throw new IllegalArgumentException("encryption needs private memory, and there is none");
    }
  }
}
