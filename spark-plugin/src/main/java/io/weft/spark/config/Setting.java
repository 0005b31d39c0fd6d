package io.weft.spark.config;

import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.JavaUtils;
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

  /**
   * A {@code spark.weft.*} setting is invalid. The message names the key, the mistake and the
   * allowed values.
   */
  public static final class InvalidSettingException extends IllegalArgumentException {
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

  /** The types of settings. */
  static final class SettingTypes {
    private static final long KIB = 1024;
    private static final Pattern CLASS_NAMES =
        Pattern.compile("[\\w$]+(\\.[\\w$]+)*(\\s*,\\s*[\\w$]+(\\.[\\w$]+)*)*");

    private SettingTypes() {}

    static SettingType<Boolean> bool() {
      return new SettingType<>() {
        @Override
        public Boolean parse(String text) {
          return switch (text.toLowerCase(Locale.ROOT)) {
            case "true" -> true;
            case "false" -> false;
            default -> throw new IllegalArgumentException(text);
          };
        }

        @Override
        public String format(Boolean value) {
          return value.toString();
        }

        @Override
        public String allowed() {
          return "true or false";
        }

        @Override
        public String name() {
          return "boolean";
        }
      };
    }

    /** A size in bytes; a number without a unit is bytes. Zero is allowed only if min is zero. */
    static SettingType<Long> bytes(long min, long max) {
      return new Ranged<>(min, max, "size") {
        @Override
        Long read(String text) {
          return JavaUtils.byteStringAsBytes(text);
        }

        @Override
        public String format(Long value) {
          return size(value);
        }
      };
    }

    /** A size in bytes: zero, with a special meaning, or a value within a range. */
    static SettingType<Long> bytesOrZero(String meaningOfZero, long min, long max) {
      SettingType<Long> range = bytes(min, max);
      return new SettingType<>() {
        @Override
        public Long parse(String text) {
          return JavaUtils.byteStringAsBytes(text) == 0 ? Long.valueOf(0) : range.parse(text);
        }

        @Override
        public String format(Long value) {
          return range.format(value);
        }

        @Override
        public String allowed() {
          return "0 (" + meaningOfZero + ") or " + range.allowed();
        }

        @Override
        public String name() {
          return range.name();
        }
      };
    }

    static SettingType<Integer> integer(int min, int max) {
      return new Ranged<>(min, max, "number") {
        @Override
        Integer read(String text) {
          return Integer.valueOf(text);
        }

        @Override
        public String format(Integer value) {
          return value.toString();
        }
      };
    }

    /** A part of a whole, at most 1. */
    static SettingType<Double> fraction(double min) {
      return new Ranged<>(min, 1.0, "fraction") {
        @Override
        Double read(String text) {
          return Double.valueOf(text);
        }

        @Override
        public String format(Double value) {
          return value.toString();
        }
      };
    }

    /** A duration; a number without a unit is seconds, as in Spark's timeouts. */
    static SettingType<Duration> duration(Duration min, Duration max) {
      return new Ranged<>(min, max, "duration") {
        @Override
        Duration read(String text) {
          return Duration.ofMillis(JavaUtils.timeStringAs(seconds(text), TimeUnit.MILLISECONDS));
        }

        @Override
        public String format(Duration value) {
          return value.toMillis() % 1000 == 0 ? value.toSeconds() + "s" : value.toMillis() + "ms";
        }
      };
    }

    private static String seconds(String text) {
      return text.chars().allMatch(Character::isDigit) ? text + "s" : text;
    }

    /** An absolute path, or empty text with a special meaning. */
    static SettingType<String> absolutePath(String empty) {
      return text("path", empty + " or an absolute path", text -> Path.of(text).isAbsolute());
    }

    /** A path in a file system of Hadoop, or empty text with a special meaning. */
    static SettingType<String> hadoopPath(String empty) {
      return text(
          "path",
          empty + " or an absolute path, or a URI with one",
          text -> text.startsWith("/") || URI.create(text).isAbsolute());
    }

    /** Names of classes, or empty text for none. */
    static SettingType<String> classNames() {
      return text(
          "classes",
          "empty or class names with commas",
          text -> CLASS_NAMES.matcher(text).matches());
    }

    private static SettingType<String> text(
        String name, String allowed, Predicate<String> isAllowed) {
      return new SettingType<>() {
        @Override
        public String parse(String text) {
          if (!text.isEmpty() && !isAllowed.test(text)) {
            throw new IllegalArgumentException(text);
          }
          return text;
        }

        @Override
        public String format(String value) {
          return value;
        }

        @Override
        public String allowed() {
          return allowed;
        }

        @Override
        public String name() {
          return name;
        }
      };
    }

    /** One of an enum's constants, written in lower case. */
    static <E extends Enum<E>> SettingType<E> choice(Class<E> type) {
      return new SettingType<>() {
        @Override
        public E parse(String text) {
          return Enum.valueOf(type, text.toUpperCase(Locale.ROOT));
        }

        @Override
        public String format(E value) {
          return value.name().toLowerCase(Locale.ROOT);
        }

        @Override
        public String allowed() {
          return Arrays.stream(type.getEnumConstants())
              .map(this::format)
              .collect(Collectors.joining(", ", "one of ", ""));
        }

        @Override
        public String name() {
          return "choice";
        }
      };
    }

    /** A size with the largest unit that keeps it a whole number. */
    static String size(long bytes) {
      String units = "kmgt";
      int unit = -1;
      long value = bytes;
      while (value != 0 && value % KIB == 0 && unit + 1 < units.length()) {
        value /= KIB;
        unit++;
      }
      return unit < 0 ? Long.toString(value) : value + units.substring(unit, unit + 1);
    }

    /** A value within a closed range. */
    private abstract static class Ranged<T extends Comparable<T>> implements SettingType<T> {
      private final T min;
      private final T max;
      private final String name;

      Ranged(T min, T max, String name) {
        this.min = min;
        this.max = max;
        this.name = name;
      }

      abstract T read(String text);

      @Override
      public final T parse(String text) {
        T value = read(text);
        if (value.compareTo(min) < 0 || value.compareTo(max) > 0) {
          throw new IllegalArgumentException(text);
        }
        return value;
      }

      @Override
      public final String allowed() {
        return "a " + name + " from " + format(min) + " to " + format(max);
      }

      @Override
      public final String name() {
        return name;
      }
    }
  }
}
