package io.weft.spark.config;

/**
 * A {@code spark.weft.*} setting is invalid. The message names the key, the mistake and the allowed
 * values.
 */
public final class InvalidSettingException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  InvalidSettingException(String message) {
    super(message);
  }

  static InvalidSettingException wrongValue(Setting<?> setting, String text) {
    return new InvalidSettingException(
        "%s is set to '%s', but must be %s; the default is %s"
            .formatted(setting.key(), text, setting.allowed(), quoted(setting.defaultText())));
  }

  private static String quoted(String text) {
    return text.isEmpty() ? "empty" : text;
  }
}
