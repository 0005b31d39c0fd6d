package io.weft.examples.side;

import java.io.Serializable;
import org.apache.spark.sql.SparkSession;

/**
 * Something to do in a side's driver. Sent there by Java serialisation, as its result is sent back.
 *
 * @param <R> the result
 */
@FunctionalInterface
public interface SideTask<R extends Serializable> extends Serializable {
  /** Runs in the side's driver, one task at a time. */
  R run(SparkSession session) throws Exception;
}
