package io.weft.spark.config;

import static io.weft.spark.config.Setting.Scope.APPLICATION;

import io.weft.spark.config.Setting.SettingTypes;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.apache.spark.SparkConf;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.FallbackStorage;
import scala.Option;

/** The settings of copies of map outputs that outlive their executor and its host. */
public final class SurviveSettings {
  /** Spark's setting for the same purpose, which is used only on decommissioning. */
  public static final String SPARKS_PATH = "spark.storage.decommission.fallbackStorage.path";

  /** Whether outputs are copied. */
  public static final Setting<Boolean> ENABLED =
      new Setting<>(
          WeftSettings.PREFIX + "survive.enabled",
          SettingTypes.bool(),
          false,
          APPLICATION,
          "Whether executors copy their map outputs in the background, for tasks that read them"
              + " after an executor is lost. New. Setting spark.weft.survive.path turns it on,"
              + " too. Blocks in GPU memory are not copied.");

  /** Where copies are. */
  public static final Setting<String> PATH =
      new Setting<>(
          WeftSettings.PREFIX + "survive.path",
          SettingTypes.hadoopPath("empty for " + SPARKS_PATH),
          "",
          APPLICATION,
          "The folder of the copies, in a file system of Hadoop that all executors and the"
              + " driver reach. Each application deletes its own folder in it at its end.");

  /** What may wait for its copy. */
  public static final Setting<Long> MAX_BYTES_IN_FLIGHT =
      new Setting<>(
          WeftSettings.PREFIX + "survive.maxBytesInFlight",
          SettingTypes.bytes(1, 1L << 50),
          4L << 30,
          APPLICATION,
          "Maximum bytes of an executor's map outputs that wait for their copy. Beyond it,"
              + " outputs of the earliest shuffle are not copied, the last published first.");

  /** How long an output may wait for its copy. */
  public static final Setting<Duration> MAX_AGE =
      new Setting<>(
          WeftSettings.PREFIX + "survive.maxAge",
          SettingTypes.duration(Duration.ofSeconds(1), Duration.ofDays(365)),
          Duration.ofMinutes(10),
          APPLICATION,
          "A map output that has waited longer for its copy is not copied.");

  /** When copies of an application without a driver are deleted. */
  public static final Setting<Duration> SWEEP_AGE =
      new Setting<>(
          WeftSettings.PREFIX + "survive.sweepAge",
          SettingTypes.duration(Duration.ofMinutes(1), Duration.ofDays(365)),
          Duration.ofHours(1),
          APPLICATION,
          "Copies that an ended application has left are deleted after this time by the next"
              + " application of the same user with the same path.");

  private SurviveSettings() {}

  /**
   * The place of outputs of which only copies are left: that of Spark's own fallback storage, with
   * the executor that has written the copy as its topology.
   */
  public static BlockManagerId place(String writer) {
    BlockManagerId fallback = FallbackStorage.FALLBACK_BLOCK_MANAGER_ID();
    return BlockManagerId.apply(
        fallback.executorId(), fallback.host(), fallback.port(), Option.apply(writer));
  }

  /** The executor id of places of copies. */
  public static String placeId() {
    return FallbackStorage.FALLBACK_BLOCK_MANAGER_ID().executorId();
  }

  /** The folder of the copies of all applications; empty if none is set. */
  public static Optional<String> path(SparkConf conf) {
    String path = PATH.get(conf);
    return Optional.of(path.isEmpty() ? conf.get(SPARKS_PATH, "").trim() : path)
        .filter(text -> !text.isEmpty());
  }

  /** Whether the user wants copies. */
  public static boolean isAskedFor(SparkConf conf) {
    return ENABLED.get(conf) || !PATH.get(conf).isEmpty();
  }

  /** Whether executors of this application copy outputs. */
  public static boolean isOn(SparkConf conf) {
    return isAskedFor(conf) && objection(conf).isEmpty();
  }

  /** Why outputs cannot be copied although the user wants it; empty if they can. */
  public static Optional<String> objection(SparkConf conf) {
    if (path(conf).isEmpty()) {
      return Optional.of("neither %s nor %s is set".formatted(PATH, SPARKS_PATH));
    }
    return conf.get("spark.master", "").matches("local(\\[.*)?")
        ? Optional.of("in local mode the driver is the only executor")
        : Optional.empty();
  }

  /** These settings, in the order of the documentation. */
  static List<Setting<?>> all() {
    return List.of(ENABLED, PATH, MAX_BYTES_IN_FLIGHT, MAX_AGE, SWEEP_AGE);
  }
}
