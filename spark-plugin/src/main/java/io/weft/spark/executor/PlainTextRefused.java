package io.weft.spark.executor;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.spark.config.WeftSettings;

/**
 * Makes no communicators: what ranks share would lie on a disk as it is, and disks are to be
 * encrypted. Immutable.
 *
 * @param executorId whose
 * @param folder where it would lie
 */
record PlainTextRefused(String executorId, String folder) implements CommunicatorFactory {
  @Override
  public Communicator create(Bootstrap bootstrap, CommunicatorOptions options) {
    throw new IllegalStateException(
        "executor "
            + executorId
            + " has no shared memory, and what ranks share would lie unencrypted on disk in "
            + folder
            + " although "
            + WeftSettings.DISK_ENCRYPTION
            + " is true. Give it a memory file system, /dev/shm or spark.weft.memory.folder");
  }
}
