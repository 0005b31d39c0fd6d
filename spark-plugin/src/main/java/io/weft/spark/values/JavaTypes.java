package io.weft.spark.values;

import static io.weft.spark.values.ValueType.exact;

import io.weft.memory.Memory;
import io.weft.spark.values.ValueType.RefusedException;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.Period;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.UUID;
import java.util.function.IntFunction;
import java.util.function.LongFunction;

/** Numbers, arrays, times and lists of Java. */
final class JavaTypes {
  private JavaTypes() {}

  static List<ValueType<?>> all() {
    List<ValueType<?>> types = new ArrayList<>();
    types.addAll(primitives());
    types.addAll(arrays());
    types.addAll(times());
    types.add(exact(30, BigInteger.class, JavaTypes::write, JavaTypes::readInteger));
    types.add(exact(31, BigDecimal.class, JavaTypes::write, JavaTypes::readDecimal));
    types.add(
        exact(
            32,
            UUID.class,
            (out, id) -> {
              out.putLong(id.getMostSignificantBits());
              out.putLong(id.getLeastSignificantBits());
            },
            in -> {
              long most = in.getLong();
              return new UUID(most, in.getLong());
            }));
    types.add(listType());
    return types;
  }

  private static List<ValueType<?>> primitives() {
    return List.of(
        exact(
            10,
            Float.class,
            (out, value) -> out.putInt(Float.floatToRawIntBits(value)),
            in -> Float.intBitsToFloat(in.getInt())),
        exact(11, Short.class, ValueWriter::putShort, ValueReader::getShort),
        exact(12, Byte.class, ValueWriter::putByte, ValueReader::getByte),
        exact(
            13,
            Character.class,
            (out, value) -> out.putShort((short) (char) value),
            in -> (char) in.getShort()),
        exact(
            14,
            Boolean.class,
            (out, value) -> out.putByte((byte) (value ? 1 : 0)),
            in -> in.getByte() != 0));
  }

  private static List<ValueType<?>> arrays() {
    return List.of(
        array(20, byte[].class, Memory.BYTE_ARRAY, Byte.BYTES, byte[]::new),
        array(21, short[].class, Memory.SHORT_ARRAY, Short.BYTES, short[]::new),
        array(22, char[].class, Memory.CHAR_ARRAY, Character.BYTES, char[]::new),
        array(23, int[].class, Memory.INT_ARRAY, Integer.BYTES, int[]::new),
        array(24, long[].class, Memory.LONG_ARRAY, Long.BYTES, long[]::new),
        array(25, float[].class, Memory.FLOAT_ARRAY, Float.BYTES, float[]::new),
        array(26, double[].class, Memory.DOUBLE_ARRAY, Double.BYTES, double[]::new),
        exact(27, boolean[].class, JavaTypes::write, JavaTypes::readBooleans),
        objects(28, Object[].class, Object[]::new),
        objects(29, String[].class, String[]::new));
  }

  /** An array of numbers, which is copied as it is. */
  private static <T> ValueType<T> array(
      int code, Class<T> type, long offset, int width, IntFunction<T> create) {
    return exact(
        code,
        type,
        (out, array) -> {
          int length = Array.getLength(array);
          long bytes = (long) length * width;
          out.onceUnlessEmpty(array, length, bytes);
          out.putLength(length);
          Memory.copyFrom(array, offset, out.advance(bytes), bytes);
        },
        in -> {
          int length = in.getLength(width);
          long bytes = (long) length * width;
          T array = create.apply(length);
          Memory.copyTo(in.advance(bytes), array, offset, bytes);
          return array;
        });
  }

  private static void write(ValueWriter out, boolean[] array) throws RefusedException {
    out.onceUnlessEmpty(array, array.length, array.length);
    out.putLength(array.length);
    for (boolean element : array) {
      out.putByte((byte) (element ? 1 : 0));
    }
  }

  private static boolean[] readBooleans(ValueReader in) {
    boolean[] array = new boolean[in.getLength(1)];
    for (int i = 0; i < array.length; i++) {
      array[i] = in.getByte() != 0;
    }
    return array;
  }

  private static ValueType<Object[]> objects(
      int code, Class<? extends Object[]> type, IntFunction<Object[]> create) {
    return new ValueType<>(
        code,
        List.of(type),
        (out, array) -> {
          out.onceUnlessEmpty(array, array.length, 0);
          out.putLength(array.length);
          for (Object element : array) {
            out.write(element);
          }
        },
        in -> in.readObjects(create));
  }

  private static List<ValueType<?>> times() {
    return List.of(
        date(40, Date.class, Date::new),
        date(41, java.sql.Date.class, java.sql.Date::new),
        exact(
            42,
            Timestamp.class,
            (out, time) -> {
              out.once(time, 0);
              out.putLong(time.getTime());
              out.putInt(time.getNanos());
            },
            in -> {
              Timestamp time = new Timestamp(in.getLong());
              time.setNanos(in.getInt());
              return time;
            }),
        exact(
            43,
            Instant.class,
            (out, time) -> {
              out.putLong(time.getEpochSecond());
              out.putInt(time.getNano());
            },
            in -> {
              long seconds = in.getLong();
              return Instant.ofEpochSecond(seconds, in.getInt());
            }),
        exact(
            44,
            LocalDate.class,
            (out, day) -> out.putLong(day.toEpochDay()),
            in -> LocalDate.ofEpochDay(in.getLong())),
        exact(
            45,
            LocalTime.class,
            (out, time) -> out.putLong(time.toNanoOfDay()),
            in -> LocalTime.ofNanoOfDay(in.getLong())),
        exact(
            46,
            LocalDateTime.class,
            (out, time) -> {
              out.putLong(time.toLocalDate().toEpochDay());
              out.putLong(time.toLocalTime().toNanoOfDay());
            },
            in -> {
              LocalDate day = LocalDate.ofEpochDay(in.getLong());
              return LocalDateTime.of(day, LocalTime.ofNanoOfDay(in.getLong()));
            }),
        exact(
            47,
            Duration.class,
            (out, time) -> {
              out.putLong(time.getSeconds());
              out.putInt(time.getNano());
            },
            in -> {
              long seconds = in.getLong();
              return Duration.ofSeconds(seconds, in.getInt());
            }),
        exact(
            48,
            Period.class,
            (out, time) -> {
              out.putInt(time.getYears());
              out.putInt(time.getMonths());
              out.putInt(time.getDays());
            },
            in -> {
              int years = in.getInt();
              int months = in.getInt();
              return Period.of(years, months, in.getInt());
            }));
  }

  @SuppressWarnings("JavaUtilDate")
  private static <T extends Date> ValueType<T> date(
      int code, Class<T> type, LongFunction<T> create) {
    return exact(
        code,
        type,
        (out, date) -> {
          out.once(date, 0);
          out.putLong(date.getTime());
        },
        in -> create.apply(in.getLong()));
  }

  static void write(ValueWriter out, BigInteger number) throws RefusedException {
    byte[] bytes = number.toByteArray();
    out.putLength(bytes.length);
    Memory.copyFrom(bytes, Memory.BYTE_ARRAY, out.advance(bytes.length), bytes.length);
  }

  static BigInteger readInteger(ValueReader in) {
    byte[] bytes = new byte[in.getLength(1)];
    Memory.copyTo(in.advance(bytes.length), bytes, Memory.BYTE_ARRAY, bytes.length);
    return new BigInteger(bytes);
  }

  static void write(ValueWriter out, BigDecimal number) throws RefusedException {
    out.putInt(number.scale());
    write(out, number.unscaledValue());
  }

  static BigDecimal readDecimal(ValueReader in) {
    int scale = in.getInt();
    return new BigDecimal(readInteger(in), scale);
  }

  /** Lists of exactly this class, whose capacity is of no matter. */
  private static ValueType<List<Object>> listType() {
    return new ValueType<>(
        60,
        List.of(ArrayList.class),
        (out, list) -> {
          out.once(list, 0);
          out.putLength(list.size());
          for (Object element : list) {
            out.write(element);
          }
        },
        in -> {
          int length = in.getLength(1);
          List<Object> list = new ArrayList<>(Math.min(length, ValueReader.AHEAD));
          for (int i = 0; i < length; i++) {
            list.add(in.read());
          }
          return list;
        });
  }
}
