package io.weft.spark.config;

import static io.weft.spark.config.Setting.Scope.APPLICATION;
import static io.weft.spark.config.WeftSettings.PREFIX;

import io.weft.spark.config.Setting.SettingTypes;
import java.util.List;

/** The settings of traces: recordings of what each executor writes, reads and waits for. */
public final class TraceSettings {
  private static final long MIB = 1L << 20;

  /** The folder of the recordings. */
  public static final Setting<String> FOLDER =
      new Setting<>(
          PREFIX + "trace.folder",
          SettingTypes.absolutePath("empty (no recording)"),
          "",
          APPLICATION,
          "Folder on the executors' hosts in which each executor records Weft's events with"
              + " Java Flight Recorder, in a file such as APPLICATION-1.jfr. The file is"
              + " complete when the executor has ended. bin/weft trace merges the files.");

  /** The largest size of a recording. */
  public static final Setting<Long> MAX_SIZE =
      new Setting<>(
          PREFIX + "trace.maxSize",
          SettingTypes.bytes(MIB, 1L << 40),
          1024 * MIB,
          APPLICATION,
          "Approximate maximum size of an executor's recording. The oldest events are deleted"
              + " first.");

  private TraceSettings() {}

  static List<Setting<?>> all() {
    return List.of(FOLDER, MAX_SIZE);
  }
}
