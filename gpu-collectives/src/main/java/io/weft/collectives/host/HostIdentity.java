package io.weft.collectives.host;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;

/** What tells this kernel and this process from others. */
final class HostIdentity {
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

  /** Of this process, different after a restart. */
  static final String PROCESS = UUID.randomUUID().toString();

  private HostIdentity() {}

  /**
   * The kernel's identity since its start. Where the kernel does not tell, only ranks of this
   * process are taken to be on its host.
   */
  static String ofKernel() {
    try {
      return Files.readString(BOOT_ID).strip();
    } catch (IOException e) {
      return PROCESS;
    }
  }
}
