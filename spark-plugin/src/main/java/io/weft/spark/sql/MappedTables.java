package io.weft.spark.sql;

import io.weft.spark.gpu.DeviceFunction;
import java.io.Serializable;
import org.apache.spark.sql.types.StructType;

/**
 * A function on tables and the schemas of its input and output. The schemas have the shapes of
 * tensors in their metadata, which Spark ignores when it compares plans. Without the schemas here,
 * Spark would reuse rows of one shape for another. Immutable; serialized with the plans of compiled
 * stages.
 *
 * @param given columns of the input tables
 * @param made columns of the output tables
 */
record MappedTables(DeviceFunction function, StructType given, StructType made)
    implements Serializable {
  /** For displayed plans, whose nodes already list their columns. */
  @Override
  public String toString() {
    return function.toString();
  }
}
