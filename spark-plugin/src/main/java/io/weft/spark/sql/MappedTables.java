package io.weft.spark.sql;

import io.weft.spark.gpu.DeviceFunction;
import java.io.Serializable;
import org.apache.spark.sql.types.StructType;

/**
 * What maps tables on a device, and all that it is told of them. Shapes of tensors lie in metadata,
 * which Spark leaves out where it compares columns of plans: without them here, it would take the
 * rows of one shape for those of another one. Immutable; travels with plans to tasks of compiled
 * stages.
 *
 * @param given columns of the tables that the function gets
 * @param made columns of those that it makes
 */
record MappedTables(DeviceFunction function, StructType given, StructType made)
    implements Serializable {
  /** For plans that are shown, whose nodes say their columns themselves. */
  @Override
  public String toString() {
    return function.toString();
  }
}
