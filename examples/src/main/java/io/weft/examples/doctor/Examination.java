package io.weft.examples.doctor;

import io.weft.collectives.host.HostOptions;
import io.weft.device.probe.Capabilities;
import io.weft.device.probe.Choice;
import io.weft.examples.terminal.Units;
import io.weft.exchange.MemoryOptions;
import io.weft.host.HostRoot;
import io.weft.spark.config.SpillMemory;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.message.WeftVersion;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.SparkConf;

/**
 * What is to be said about a machine.
 *
 * @param capabilities what it can do
 * @param folder where the user wants segments; empty to leave that to the capabilities
 * @param localFolders where they go otherwise
 */
record Examination(Capabilities capabilities, Optional<Path> folder, List<Path> localFolders) {
  private static final String INDENT = "  ";

  private static final String OTHERS_BLOCKS =
      "shm from this host, tcp from others; never nccl, as they lie in memory of the host";

  String toText() {
    List<String> lines = new ArrayList<>();
    lines.add(
        "Weft %s, Java %s, %s %s on %s"
            .formatted(
                WeftVersion.current(),
                System.getProperty("java.version"),
                System.getProperty("os.name"),
                System.getProperty("os.version"),
                System.getProperty("os.arch")));
    lines.add("");
    lines.add("This machine has");
    capabilities.lines().forEach(line -> lines.add(INDENT + line));
    lines.add("");
    lines.add("Weft would do here");
    lines.add(INDENT + "shuffle blocks: " + blocks());
    lines.add(INDENT + "where spark.io.encryption.enabled: " + encrypted());
    lines.add(INDENT + "blocks of other executors: " + OTHERS_BLOCKS);
    lines.add(INDENT + "arrays between GPUs of executors: " + arrays());
    lines.add(INDENT + "communicators without Spark: in " + HostOptions.on(capabilities).folder());
    capabilities.choices().forEach(line -> lines.add(INDENT + line));
    return String.join("\n", lines) + "\n";
  }

  /** The sizes of the default settings. */
  private static String encrypted() {
    SparkConf defaults = new SparkConf(false);
    return "up to %s in each executor unless %s says otherwise"
        .formatted(
            SpillMemory.of(defaults).describe(WeftSettings.segmentBytes(defaults)),
            WeftSettings.SPILL_PRIVATE_MEMORY.key());
  }

  /** What this machine contributes to a choice that depends on both ends. */
  private String arrays() {
    Choice choice = capabilities.betweenGpus();
    return choice.isPreferred()
        ? "nccl, with executors that have the same version and another GPU; else shm or tcp (%s)"
            .formatted(choice.reason())
        : "shm on this host, tcp to others, through memory of the host; no nccl (%s)"
            .formatted(choice.reason());
  }

  /** As an executor chooses, with the default settings. */
  private String blocks() {
    long least =
        WeftSettings.MEMORY_SEGMENT_SIZE.defaultValue() + WeftSettings.MEMORY_MARGIN.defaultValue();
    try {
      HostRoot root = HostRoot.choose(capabilities, folder.orElse(null), localFolders, least);
      return "in %s, up to %s for each executor unless spark.weft.memory.size says otherwise%s%s"
          .formatted(
              root.userFolder(),
              Units.bytes(MemoryOptions.automaticBytes(root.path())),
              root.sharedMemory() ? "" : ", which is not in memory",
              root.fallbackReason().map(reason -> "; because " + reason).orElse(""));
    } catch (IOException e) {
      return "Weft cannot start: " + e.getMessage();
    }
  }
}
