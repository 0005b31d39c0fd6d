package io.weft.spark.config;

import static io.weft.spark.config.Setting.Scope.APPLICATION;

import io.weft.spark.config.Setting.SettingTypes;
import java.time.Duration;
import java.util.List;
import org.apache.spark.SparkConf;

/** The settings of shared memory and of what goes to disk beyond it. */
public final class MemorySettings {
  private static final long MIB = 1L << 20;
  private static final long GIB = 1L << 30;
  private static final long TIB = 1L << 40;

  /** Budget of shared memory for each executor. */
  public static final Setting<Long> SIZE =
      new Setting<>(
          WeftSettings.PREFIX + "memory.size",
          SettingTypes.bytesOrZero("choose", MIB, 64 * TIB),
          0L,
          APPLICATION,
          "Shared memory of each executor for shuffle data. 0 takes a quarter of the shared"
              + " memory file system, at most 4g and at most what the JVM leaves of its container;"
              + " none if that is less than two segments. Data beyond this size goes to Spark's"
              + " local folders.");

  /** The part of a memory file system that Weft may fill. */
  public static final Setting<Double> HOST_FRACTION =
      new Setting<>(
          WeftSettings.PREFIX + "memory.hostFraction",
          SettingTypes.fraction(0.01),
          0.5,
          APPLICATION,
          "The part of the shared memory file system up to which the executors of a host"
              + " fill it. Files of all programs count. Beyond it, executors use Spark's local"
              + " folders.");

  /** Size of a segment of the arena. */
  public static final Setting<Long> SEGMENT_SIZE =
      new Setting<>(
          WeftSettings.PREFIX + "memory.segmentSize",
          SettingTypes.bytes(MIB, GIB),
          64 * MIB,
          APPLICATION,
          "Memory is reserved and reused in segments of this size. A larger row gets a"
              + " segment of its own.");

  /** The folder of the segments. */
  public static final Setting<String> FOLDER =
      new Setting<>(
          WeftSettings.PREFIX + "memory.folder",
          SettingTypes.absolutePath("empty (choose)"),
          "",
          APPLICATION,
          "Folder of a memory file system for the segments. Empty takes /dev/shm, or the"
              + " first of Spark's local folders if /dev/shm is absent, read-only or too small.");

  /** Free bytes that Weft leaves on each file system. */
  public static final Setting<Long> MARGIN =
      new Setting<>(
          WeftSettings.PREFIX + "memory.margin",
          SettingTypes.bytes(0, TIB),
          32 * MIB,
          APPLICATION,
          "Bytes that Weft leaves free on every file system where it reserves memory.");

  /** How long memory without data is kept. */
  public static final Setting<Duration> IDLE_TIME =
      new Setting<>(
          WeftSettings.PREFIX + "memory.idleTime",
          SettingTypes.duration(Duration.ZERO, Duration.ofDays(30)),
          Duration.ofMinutes(1),
          APPLICATION,
          "Segments without data are deleted, and unused mappings released, after this time."
              + " Until then later shuffles reuse them. 0 keeps all until the executor ends.");

  /** Budget on disk for each executor. */
  public static final Setting<Long> SPILL_SIZE =
      new Setting<>(
          WeftSettings.PREFIX + "spill.size",
          SettingTypes.bytes(0, 1024 * TIB),
          TIB,
          APPLICATION,
          "Bytes of Spark's local folders for each executor's shuffle data. With 0, a task"
              + " that finds no memory fails.");

  /** Private memory for encrypting and decrypting chunks. */
  public static final Setting<Long> SPILL_PRIVATE_MEMORY =
      new Setting<>(
          WeftSettings.PREFIX + "spill.privateMemory",
          SettingTypes.bytes(2 * MIB, TIB),
          GIB,
          APPLICATION,
          "Private memory of each executor with spark.io.encryption.enabled, used while"
              + " shared memory is full. Half is retained: spilled GPU memory, received arrays and"
              + " batches of feeds. The rest is transient memory of map tasks and readers. Below"
              + " twice spark.weft.memory.segmentSize, segments and chunks are shorter. An"
              + " application does not start if its executors run more tasks at once than the"
              + " transient part has chunks.");

  private MemorySettings() {}

  /** The size of segments, at most all shared memory and half of private memory. */
  public static long segmentBytes(SparkConf conf) {
    long segment = SEGMENT_SIZE.get(conf);
    long memory = SIZE.get(conf) > 0 ? SIZE.get(conf) : segment;
    long half =
        WeftSettings.isDiskEncrypted(conf) ? SPILL_PRIVATE_MEMORY.get(conf) / 128 * 64 : segment;
    return Math.min(segment, Math.min(memory, half));
  }

  /** These settings, in the order of the documentation. */
  static List<Setting<?>> all() {
    return List.of(
        SIZE,
        HOST_FRACTION,
        SEGMENT_SIZE,
        FOLDER,
        MARGIN,
        IDLE_TIME,
        SPILL_SIZE,
        SPILL_PRIVATE_MEMORY);
  }
}
