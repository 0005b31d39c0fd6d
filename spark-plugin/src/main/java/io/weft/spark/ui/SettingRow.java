package io.weft.spark.ui;

import io.weft.spark.config.Setting;
import io.weft.spark.config.Setting.InvalidSettingException;
import io.weft.spark.config.WeftSettings;
import java.util.List;
import org.apache.spark.SparkConf;

/**
 * A setting of an application.
 *
 * @param changed whether its value differs from the default
 */
record SettingRow(String key, String value, String defaultValue, boolean changed, String meaning) {
  /** Returns all settings of Weft, in the order of the documentation. */
  static List<SettingRow> of(SparkConf conf) {
    return WeftSettings.all().stream().map(setting -> of(setting, conf)).toList();
  }

  private static <T> SettingRow of(Setting<T> setting, SparkConf conf) {
    String value = value(setting, conf);
    String usual = setting.defaultText();
    return new SettingRow(setting.key(), value, usual, !value.equals(usual), setting.doc());
  }

  /** The text as it was set, if this version of Weft does not allow it: a log may be old. */
  private static <T> String value(Setting<T> setting, SparkConf conf) {
    try {
      return setting.format(setting.get(conf));
    } catch (InvalidSettingException e) {
      return conf.get(setting.key(), "");
    }
  }
}
