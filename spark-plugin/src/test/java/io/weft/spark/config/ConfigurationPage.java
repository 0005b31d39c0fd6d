package io.weft.spark.config;

import java.util.stream.Collectors;

/** Writes {@code docs/configuration.md} from {@link WeftSettings}. */
final class ConfigurationPage {
  private static final String HEAD =
      """
      # Configuration

      For: users and platform teams who configure Weft.

      One setting turns Weft on: `spark.plugins=io.weft.spark.WeftPlugin`. Everything below is optional.
      Sizes take Spark's units (`512m`, `8g`; without one, bytes), durations too (`500ms`, `2min`; without
      one, seconds). A wrong value or an unknown key stops the application at its start with an error that
      names the key, the value and what is allowed. *Session* settings can be changed between queries with
      `spark.conf.set`; the others are read once.

      | key | default | allowed | read | meaning |
      |---|---|---|---|---|
      """;

  private static final String TAIL =
      """

      Where in the code: generated from `WeftSettings` in `io.weft.spark.config`; `ConfigurationPageTest` compares.
      """;

  private ConfigurationPage() {}

  /** The whole page as Markdown. */
  public static String markdown() {
    return WeftSettings.all().stream()
        .map(ConfigurationPage::row)
        .collect(Collectors.joining("\n", HEAD, "\n" + TAIL));
  }

  private static String row(Setting<?> setting) {
    String read = setting.scope() == Setting.Scope.SESSION ? "per session" : "at start";
    return "| `%s` | %s | %s | %s | %s |"
        .formatted(
            setting.key(),
            setting.defaultText().isEmpty() ? "empty" : "`" + setting.defaultText() + "`",
            setting.allowed(),
            read,
            setting.doc());
  }
}
