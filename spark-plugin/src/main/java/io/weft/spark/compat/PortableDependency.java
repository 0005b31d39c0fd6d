package io.weft.spark.compat;

import org.apache.spark.PartitionIdPassthrough;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.shuffle.ShuffleWriteProcessor;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import scala.Option;
import scala.Product2;

/**
 * A shuffle dependency of records whose keys are partition numbers. It calls the one constructor of
 * {@link ShuffleDependency} that Spark 4.0, 4.1 and 4.2 have in common.
 *
 * @param <V> class of the records' values
 */
public abstract class PortableDependency<V> extends ShuffleDependency<Object, V, V> {
  /**
   * @param records what the map side gives
   * @param partitions number of reduce partitions
   * @param columns columns of a row, for Spark's row serializer
   * @param processor runs the writer in a map task
   * @param value class of the values
   */
  protected PortableDependency(
      RDD<? extends Product2<Object, V>> records,
      int partitions,
      int columns,
      ShuffleWriteProcessor processor,
      Class<V> value) {
    super(
        records,
        new PartitionIdPassthrough(partitions),
        new UnsafeRowSerializer(columns, null),
        Option.empty(),
        Option.empty(),
        false,
        processor,
        ScalaInterop.erasedTag(Integer.TYPE),
        ScalaInterop.tag(value),
        ScalaInterop.tag(value));
    // A merged shuffle consists of Spark's data files, which Weft does not write.
    setShuffleMergeAllowed(false);
  }
}
