package io.weft.spark.runtime;

import io.weft.spark.config.NoRepeat;
import io.weft.spark.config.WeftSettings;

/**
 * An executor without a memory file system would write plain data, although disks are encrypted.
 */
public final class UnencryptedDiskException extends IllegalStateException implements NoRepeat {
  private static final long serialVersionUID = 1L;

  /**
   * @param what would be written
   * @param folder on the disk
   */
  public UnencryptedDiskException(String executorId, String what, String folder) {
    super(
        ("executor %s has no shared memory, and %s would be unencrypted on disk in %s although %s"
                + " is true. Provide a memory file system: /dev/shm or spark.weft.memory.folder")
            .formatted(executorId, what, folder, WeftSettings.DISK_ENCRYPTION));
  }
}
