package io.weft.spark.executor;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.spark.config.WeftSettings;

/**
 * Refuses to create communicators, because the data of ranks would be on disk without encryption
 * although disks must be encrypted. Immutable.
 *
 * @param executorId id of this executor
 * @param folder the folder on disk
 */
record PlainTextRefused(String executorId, String folder) implements CommunicatorFactory {
  @Override
  public Communicator create(Bootstrap bootstrap, CommunicatorOptions options) {
    throw new IllegalStateException(
        "executor "
            + executorId
            + " has no shared memory, and the shared data of ranks would be unencrypted on disk in "
            + folder
            + " although "
            + WeftSettings.DISK_ENCRYPTION
            + " is true. Provide a memory file system: /dev/shm or spark.weft.memory.folder");
  }
}
