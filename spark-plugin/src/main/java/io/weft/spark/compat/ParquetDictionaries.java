package io.weft.spark.compat;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.apache.parquet.column.Dictionary;
import org.apache.spark.sql.execution.datasources.parquet.ParquetDictionary;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;

/**
 * The dictionary of a Parquet column inside Spark's vectors, for which Spark has no public
 * accessor. Spark makes a new object around it for each batch. If a Spark version names a field
 * differently, there is none, and callers decode each value. Stateless.
 */
public final class ParquetDictionaries {
  private static final VarHandle OF_VECTOR =
      find(
          WritableColumnVector.class,
          "dictionary",
          org.apache.spark.sql.execution.vectorized.Dictionary.class);
  private static final VarHandle INNER =
      find(ParquetDictionary.class, "dictionary", Dictionary.class);

  private ParquetDictionaries() {}

  /**
   * Returns the dictionary of a vector's ids, which is the same object for all batches of a column
   * in a row group; null if there is none or it cannot be read.
   */
  public static Dictionary of(WritableColumnVector vector) {
    return OF_VECTOR != null
            && INNER != null
            && OF_VECTOR.get(vector) instanceof ParquetDictionary spark
        ? (Dictionary) INNER.get(spark)
        : null;
  }

  private static VarHandle find(Class<?> owner, String field, Class<?> type) {
    try {
      return MethodHandles.privateLookupIn(owner, MethodHandles.lookup())
          .findVarHandle(owner, field, type);
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }
}
