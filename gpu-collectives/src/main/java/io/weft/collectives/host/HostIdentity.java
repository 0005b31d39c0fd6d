package io.weft.collectives.host;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;

/** The identities of this kernel and this process. */
final class HostIdentity {
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

  /** The identity of this process, different after a restart. */
  static final String PROCESS = UUID.randomUUID().toString();

  private HostIdentity() {}

  /**
   * The identity of the running kernel since its boot. If the kernel does not provide one, only
   * ranks of this process count as ranks of its host.
   */
  static String ofKernel() {
    try {
      return Files.readString(BOOT_ID).strip();
    } catch (IOException e) {
      return PROCESS;
    }
  }
}
