package io.weft.spark.config;

import io.weft.spark.config.Setting.InvalidSettingException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.apache.commons.text.similarity.LevenshteinDistance;
import org.apache.spark.SparkConf;
import scala.Tuple2;

/** Checks all {@code spark.weft.*} keys of an application at its start. */
public final class SettingsCheck {
  private static final int NEAR = 12;

  private SettingsCheck() {}

  /**
   * Checks every key and value.
   *
   * @throws InvalidSettingException if a key is unknown or a value not allowed; the message lists
   *     every mistake on its own line
   */
  public static void check(SparkConf conf) {
    List<String> mistakes = new ArrayList<>();
    Arrays.stream(conf.getAll())
        .filter(entry -> entry._1().startsWith(WeftSettings.PREFIX))
        .sorted(Comparator.comparing(Tuple2::_1))
        .forEach(entry -> mistake(entry._1(), entry._2()).ifPresent(mistakes::add));
    if (!mistakes.isEmpty()) {
      throw new InvalidSettingException(String.join(System.lineSeparator(), mistakes));
    }
  }

  private static Optional<String> mistake(String key, String text) {
    for (Setting<?> setting : WeftSettings.all()) {
      if (setting.key().equals(key)) {
        return wrongValue(setting, text);
      }
    }
    return Optional.of(unknown(key, text));
  }

  private static Optional<String> wrongValue(Setting<?> setting, String text) {
    try {
      setting.parse(text);
      return Optional.empty();
    } catch (InvalidSettingException e) {
      return Optional.of(e.getMessage());
    }
  }

  private static String unknown(String key, String text) {
    String mistake = "%s is set to '%s', but Weft has no such setting".formatted(key, text);
    return nearest(key)
        .map(near -> mistake + "; did you mean " + near + "?")
        .orElse(mistake + "; docs/configuration.md lists all of them");
  }

  /**
   * Finds the known key that the user probably meant: one with the same last part, else the one
   * with the fewest edits.
   */
  private static Optional<String> nearest(String key) {
    LevenshteinDistance distance = new LevenshteinDistance(NEAR);
    Comparator<String> endsOtherwise =
        Comparator.comparing(known -> !lastPart(known).equalsIgnoreCase(lastPart(key)));
    return WeftSettings.all().stream()
        .map(Setting::key)
        .filter(known -> distance.apply(key, known) >= 0)
        .min(endsOtherwise.thenComparing(known -> distance.apply(key, known)));
  }

  private static String lastPart(String key) {
    return key.substring(key.lastIndexOf('.') + 1);
  }
}
