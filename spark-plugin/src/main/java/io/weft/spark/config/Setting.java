package io.weft.spark.config;

import org.apache.spark.SparkConf;
import org.apache.spark.sql.internal.SQLConf;

/**
 * One setting: its key, type, default, range and documentation.
 *
 * <p>Thread-safety: immutable.
 *
 * @param <T> the type of its value
 */
public final class Setting<T> {
  /** When a setting is read. */
  public enum Scope {
    /** Once, when the application starts. */
    APPLICATION,
    /** For each query; {@code spark.conf.set} changes it at run time. */
    SESSION
  }

  private final String key;
  private final SettingType<T> type;
  private final T defaultValue;
  private final Scope scope;
  private final String doc;

  Setting(String key, SettingType<T> type, T defaultValue, Scope scope, String doc) {
    this.key = key;
    this.type = type;
    this.defaultValue = defaultValue;
    this.scope = scope;
    this.doc = doc;
  }

  /** The full key, {@code spark.weft.…}. */
  public String key() {
    return key;
  }

  /** The value if the user sets none. */
  public T defaultValue() {
    return defaultValue;
  }

  /** When the setting is read. */
  public Scope scope() {
    return scope;
  }

  /** The documentation, in sentences. */
  public String doc() {
    return doc;
  }

  /** The allowed values, as the end of a sentence. */
  public String allowed() {
    return type.allowed();
  }

  /** The default as a user would write it; empty text for an empty default. */
  public String defaultText() {
    return type.format(defaultValue);
  }

  /**
   * The application's value.
   *
   * @throws InvalidSettingException if the value set is not allowed
   */
  public T get(SparkConf conf) {
    String text = conf.get(key, null);
    return text == null ? defaultValue : parse(text);
  }

  /**
   * The session's value. A session starts with the application's values.
   *
   * @throws InvalidSettingException if the value set is not allowed
   */
  public T get(SQLConf conf) {
    String text = conf.getConfString(key, null);
    return text == null ? defaultValue : parse(text);
  }

  /**
   * Parses a text.
   *
   * @throws InvalidSettingException if the text is not allowed; the message names the key, the text
   *     and what is allowed
   */
  public T parse(String text) {
    try {
      return type.parse(text.trim());
    } catch (IllegalArgumentException e) {
      throw InvalidSettingException.wrongValue(this, text);
    }
  }

  /** A value as a user would write it. */
  public String format(T value) {
    return type.format(value);
  }

  @Override
  public String toString() {
    return key;
  }
}
