package io.weft.device.probe;

import io.weft.memory.Bytes;
import io.weft.memory.MappedSegment;
import java.io.IOException;
import java.net.NetworkInterface;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;

/** Probes the host itself. */
final class HostProbe {
  private static final String HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  private static final long TRIAL_BYTES = 4096;

  private final ProbeOptions options;

  HostProbe(ProbeOptions options) {
    this.options = options;
  }

  /** Creates, maps and deletes a segment, because only that proves the capability. */
  Finding sharedMemory() throws IOException {
    Path folder = options.sharedFolder();
    if (!Files.isDirectory(folder)) {
      return Finding.no(folder + " does not exist");
    }
    if (!Files.isWritable(folder)) {
      return Finding.no(folder + " is not writable for " + System.getProperty("user.name"));
    }
    Path trial = folder.resolve("weft-probe-" + UUID.randomUUID());
    try (MappedSegment segment = MappedSegment.reserve(trial, TRIAL_BYTES)) {
      String type = Files.getFileStore(folder).type();
      long usable = folder.toFile().getUsableSpace();
      String size = Bytes.text(usable) + " free in " + folder + " (" + type + ")";
      return type.equals("tmpfs") || type.equals("ramfs")
          ? Finding.yes(size + ", a segment of " + segment.size() + " bytes was mapped")
          : Finding.no(size + " is not in memory; segments there work, at the speed of a disk");
    } catch (IOException e) {
      return Finding.no("a segment in " + folder + " failed: " + e);
    } finally {
      Files.deleteIfExists(trial);
    }
  }

  /** Reads the active setting, which the kernel puts in brackets. */
  Finding hugePages() throws IOException {
    Path file = options.at(HUGE_PAGES);
    try {
      String setting = Files.readString(file).strip();
      boolean on =
          setting.contains("[always]")
              || setting.contains("[within_size]")
              || setting.contains("[force]");
      return new Finding(on, HUGE_PAGES + " is \"" + setting + "\"");
    } catch (NoSuchFileException e) {
      return Finding.no(HUGE_PAGES + " does not exist: the kernel has none for shared memory");
    }
  }

  Finding processors() {
    int count = Runtime.getRuntime().availableProcessors();
    return new Finding(
        count > 1, count + (count == 1 ? " processor" : " processors") + " for this JVM");
  }

  Finding network() throws IOException {
    List<String> reachable = new ArrayList<>();
    for (NetworkInterface each : Collections.list(NetworkInterface.getNetworkInterfaces())) {
      if (each.isUp() && !each.isLoopback() && each.getInetAddresses().hasMoreElements()) {
        reachable.add(each.getName());
      }
    }
    return reachable.isEmpty()
        ? Finding.no("no interface but loopback is up")
        : Finding.yes("interfaces " + String.join(", ", reachable));
  }

  Finding rdma() throws IOException {
    List<String> devices = names(options.at("/sys/class/infiniband"));
    return devices.isEmpty()
        ? Finding.no("/sys/class/infiniband has no device")
        : Finding.yes("devices " + String.join(", ", devices));
  }

  /** As {@link #names}, but empty if the folder cannot be read. */
  static List<String> namesOrNone(Path folder) {
    try {
      return names(folder);
    } catch (IOException e) {
      return List.of();
    }
  }

  /** The sorted names in a folder; empty if there is no such folder. */
  static List<String> names(Path folder) throws IOException {
    List<String> names = new ArrayList<>();
    if (Files.isDirectory(folder)) {
      try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder)) {
        entries.forEach(entry -> names.add(entry.getFileName().toString()));
      }
    }
    Collections.sort(names);
    return names;
  }
}
