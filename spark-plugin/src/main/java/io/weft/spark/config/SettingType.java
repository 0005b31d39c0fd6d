package io.weft.spark.config;

/**
 * How the text of a setting becomes a value, and what text is allowed.
 *
 * @param <T> the value's type
 */
interface SettingType<T> {
  /**
   * Reads a value.
   *
   * @throws IllegalArgumentException if the text is not one of the allowed values; the message need
   *     not say more, {@link Setting} names the key and {@link #allowed()}
   */
  T parse(String text);

  /** Writes a value the way {@link #parse} reads it and a person likes to see it. */
  String format(T value);

  /** What is allowed, as the rest of a sentence: "a size from 1m to 1g". */
  String allowed();

  /** A word for the type in the documentation. */
  String name();
}
