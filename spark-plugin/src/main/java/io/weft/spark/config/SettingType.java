package io.weft.spark.config;

/**
 * Parses and formats the values of a setting.
 *
 * @param <T> the value's type
 */
interface SettingType<T> {
  /**
   * Reads a value.
   *
   * @throws IllegalArgumentException if the text is not allowed; {@link Setting} adds the key and
   *     {@link #allowed()} to the message
   */
  T parse(String text);

  /** Formats a value for people. {@link #parse} can read it. */
  String format(T value);

  /** The allowed values, as the end of a sentence: "a size from 1m to 1g". */
  String allowed();

  /** A word for the type in the documentation. */
  String name();
}
