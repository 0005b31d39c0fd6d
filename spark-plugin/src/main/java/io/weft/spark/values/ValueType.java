package io.weft.spark.values;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * How objects of some classes are written and read. Only exact classes count: a subclass may have
 * more state.
 *
 * @param code in front of each object; below 128, and never used for another type
 * @param classes of the objects
 */
record ValueType<T>(int code, List<Class<?>> classes, Write<T> write, Read<T> read) {
  /** Codes of the types that writer and reader know themselves, as they are frequent. */
  static final byte NULL = 0;

  static final byte LATIN1 = 1;
  static final byte UTF16 = 2;
  static final byte LONG = 3;
  static final byte INTEGER = 4;
  static final byte DOUBLE = 5;
  static final byte ROW_WITH_SCHEMA = 6;

  private static final int CODES = 128;
  private static final ValueType<?>[] BY_CODE = new ValueType<?>[CODES];
  private static final Map<Class<?>, ValueType<Object>> BY_CLASS = new HashMap<>();

  /** Faster than the map. Holds null for other classes. */
  private static final ClassValue<ValueType<Object>> FOUND =
      new ClassValue<>() {
        @Override
        protected ValueType<Object> computeValue(Class<?> type) {
          return BY_CLASS.get(type);
        }
      };

  static {
    Stream.of(JavaTypes.all(), ScalaTypes.all()).flatMap(List::stream).forEach(ValueType::add);
  }

  /** Writes the contents of an object. */
  @FunctionalInterface
  interface Write<T> {
    void to(ValueWriter out, T value) throws RefusedException;
  }

  /** Reads what {@link Write} wrote. */
  @FunctionalInterface
  interface Read<T> {
    T from(ValueReader in);
  }

  static <T> ValueType<T> exact(int code, Class<T> valueClass, Write<T> write, Read<T> read) {
    return new ValueType<>(code, List.of(valueClass), write, read);
  }

  @SuppressWarnings("unchecked")
  private static void add(ValueType<?> type) {
    boolean known = BY_CODE[type.code] != null;
    BY_CODE[type.code] = type;
    for (Class<?> valueClass : type.classes) {
      known |= BY_CLASS.put(valueClass, (ValueType<Object>) type) != null;
    }
    if (known) {
      throw new IllegalStateException(type + " has a code or class of another type");
    }
  }

  /** The type of a class, or null. */
  static ValueType<Object> of(Class<?> valueClass) {
    return FOUND.get(valueClass);
  }

  /** The type with a code, or null. */
  static ValueType<?> of(byte code) {
    return code < 0 ? null : BY_CODE[code];
  }

  /** Stops the writing of a record. Without a stack, as it is no failure. */
  static final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;

    private final long result;

    private RefusedException(long result) {
      super("refused", null, false, false);
      this.result = result;
    }

    /** The record is longer than its room. */
    static RefusedException noRoom() {
      return new RefusedException(ValueWriter.NO_ROOM);
    }

    /** The record has an object that only Java's serialization writes. */
    static RefusedException unknown() {
      return new RefusedException(ValueWriter.UNKNOWN);
    }

    /** What {@link ValueWriter#write} returns. */
    long result() {
      return result;
    }
  }
}
