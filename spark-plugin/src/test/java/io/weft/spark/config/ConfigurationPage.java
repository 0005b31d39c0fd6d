package io.weft.spark.config;

import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Writes {@code docs/configuration.md} from {@link WeftSettings}. */
final class ConfigurationPage {
  private static final String HEAD =
      """
      # Configuration

      For: users and platform teams who configure Weft.

      One setting turns Weft on: `spark.plugins=io.weft.spark.WeftPlugin`. Sizes take Spark's units (`512m`;
      without one, bytes), durations too (`500ms`, `2min`; without one, seconds). A wrong value or an unknown
      key stops the application at its start. Settings marked *session* can be changed between queries with
      `spark.conf.set`; the others are read at the start. In brackets: the default; what is allowed.

      """;

  private static final String TAIL =
      """

      Where in the code: generated from `WeftSettings` in `io.weft.spark.config`; `ConfigurationPageTest` compares.
      """;

  /** What the default before it says already. */
  private static final Pattern LEAD =
      Pattern.compile("^(?:(?:an? (?:size|number|duration|fraction) from|one of) |true or false$)");

  private ConfigurationPage() {}

  /** The whole page as Markdown. */
  public static String markdown() {
    return WeftSettings.all().stream()
        .map(ConfigurationPage::row)
        .collect(Collectors.joining("\n", HEAD, "\n" + TAIL));
  }

  private static String row(Setting<?> setting) {
    String set = setting.defaultText().isEmpty() ? "" : "`" + setting.defaultText() + "`";
    String allowed = LEAD.matcher(setting.allowed()).replaceFirst("");
    String session = setting.scope() == Setting.Scope.SESSION ? "*session*" : "";
    String brackets =
        Stream.of(set, allowed, session)
            .filter(part -> !part.isEmpty())
            .collect(Collectors.joining("; "));
    return "- `%s` (%s): %s".formatted(setting.key(), brackets, setting.doc());
  }
}
