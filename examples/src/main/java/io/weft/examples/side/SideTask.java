package io.weft.examples.side;

import java.io.Serializable;
import org.apache.spark.sql.SparkSession;

/**
 * A task for a side's driver. Java serialisation transfers the task and its result.
 *
 * @param <R> the type of the result
 */
@FunctionalInterface
public interface SideTask<R extends Serializable> extends Serializable {
  /** Runs in the side's driver, one task at a time. */
  R run(SparkSession session) throws Exception;
}
