package io.weft.spark.compat;

import java.lang.reflect.Field;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.sql.execution.metric.SQLMetric;

/**
 * Properties of a shuffle, read from private fields of Spark's serializer for packed rows.
 *
 * @param fields columns of a row
 * @param dataSize the metric by which adaptive execution chooses joins, or null
 */
public record RowSerializer(int fields, SQLMetric dataSize) {
  private static final Class<?> SERIALIZER;
  private static final Field FIELDS;
  private static final Field DATA_SIZE;

  static {
    try {
      SERIALIZER = Class.forName("org.apache.spark.sql.execution.UnsafeRowSerializer");
      FIELDS = SERIALIZER.getDeclaredField("numFields");
      FIELDS.setAccessible(true);
      DATA_SIZE = SERIALIZER.getDeclaredField("dataSize");
      DATA_SIZE.setAccessible(true);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** Whether the serializer is Spark's serializer for packed rows. */
  public static boolean packsRows(Serializer serializer) {
    return serializer.getClass() == SERIALIZER;
  }

  /** Reads a serializer for which {@link #packsRows} is true. */
  public static RowSerializer of(Serializer serializer) {
    try {
      return new RowSerializer(FIELDS.getInt(serializer), (SQLMetric) DATA_SIZE.get(serializer));
    } catch (IllegalAccessException e) {
      throw new IllegalStateException("UnsafeRowSerializer cannot be read", e);
    }
  }
}
