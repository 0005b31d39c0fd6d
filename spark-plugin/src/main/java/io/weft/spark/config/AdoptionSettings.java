package io.weft.spark.config;

import static io.weft.spark.config.Setting.Scope.APPLICATION;

import io.weft.shuffle.ExchangeOptions.AdoptionOptions;
import io.weft.shuffle.store.FolderAdoption.Verify;
import io.weft.spark.config.Setting.SettingTypes;
import java.time.Duration;
import java.util.List;
import org.apache.spark.SparkConf;

/** The settings of the adoption of map outputs whose executor died. */
public final class AdoptionSettings {
  /** Whether executors adopt outputs. */
  public static final Setting<Boolean> ENABLED =
      new Setting<>(
          WeftSettings.PREFIX + "adopt.enabled",
          SettingTypes.bool(),
          false,
          APPLICATION,
          "Whether an executor adopts the map outputs of another one of its application that is"
              + " killed on its host. New. Blocks in GPU memory cannot be adopted.");

  /** How long an adoption may take. */
  public static final Setting<Duration> TIMEOUT =
      new Setting<>(
          WeftSettings.PREFIX + "adopt.timeout",
          SettingTypes.duration(Duration.ofMillis(100), Duration.ofHours(1)),
          Duration.ofSeconds(30),
          APPLICATION,
          "How long an executor that adopts waits for each answer of the driver.");

  /** Which chunks are verified. */
  public static final Setting<Verify> VERIFY =
      new Setting<>(
          WeftSettings.PREFIX + "adopt.verify",
          SettingTypes.choice(Verify.class),
          Verify.SAMPLE,
          APPLICATION,
          "Which chunks on disk are verified before adoption: none, the first of each map"
              + " output (sample), or all (whole).");

  /** Whether adopted memory counts in the budget of its new owner. */
  public static final Setting<Boolean> IN_BUDGET =
      new Setting<>(
          WeftSettings.PREFIX + "adopt.inBudget",
          SettingTypes.bool(),
          true,
          APPLICATION,
          "Whether adopted segments count in the adopter's spark.weft.memory.size and"
              + " spark.weft.spill.size. In any case it adopts at most these sizes.");

  /** How long outputs wait for a later executor. */
  public static final Setting<Duration> KEEP_TIME =
      new Setting<>(
          WeftSettings.PREFIX + "adopt.keepTime",
          SettingTypes.duration(Duration.ZERO, Duration.ofDays(1)),
          Duration.ZERO,
          APPLICATION,
          "How long, or up to 10 s less, folders of dead executors are kept on a host where no"
              + " executor of the application is left, for a replacement that starts there."
              + " They are deleted after that, or when the driver on that host ends. 0: until"
              + " an executor of another application starts there.");

  private AdoptionSettings() {}

  /** Returns the options of an executor. */
  public static AdoptionOptions of(SparkConf conf) {
    return new AdoptionOptions(
        ENABLED.get(conf), VERIFY.get(conf), IN_BUDGET.get(conf), KEEP_TIME.get(conf));
  }

  /** These settings, in the order of the documentation. */
  static List<Setting<?>> all() {
    return List.of(ENABLED, TIMEOUT, VERIFY, IN_BUDGET, KEEP_TIME);
  }
}
