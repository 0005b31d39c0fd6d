package io.weft.spark.compat;

import java.io.Serializable;
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
  private final RowChecksumMode rowChecksums;

  /**
   * @param records what the map side gives
   * @param partitions number of reduce partitions
   * @param columns columns of a row, for Spark's row serializer
   * @param processor runs the writer in a map task
   * @param value class of the values
   * @param rowChecksums what Spark does with the checksums of rows
   */
  protected PortableDependency(
      RDD<? extends Product2<Object, V>> records,
      int partitions,
      int columns,
      ShuffleWriteProcessor processor,
      Class<V> value,
      RowChecksumMode rowChecksums) {
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
    this.rowChecksums = rowChecksums;
  }

  /** Whether the writers compute checksums of rows. */
  public final boolean hasRowChecksums() {
    return rowChecksums.isComputed();
  }

  /** Overrides Spark's method of this name, which Spark 4.0 does not have. */
  @SuppressWarnings("MissingOverride")
  public boolean checksumMismatchFullRetryEnabled() {
    return rowChecksums.fullRetry();
  }

  /** Overrides Spark's method of this name, which only Spark 4.2 and later have. */
  @SuppressWarnings("MissingOverride")
  public boolean checksumMismatchQueryLevelRollbackEnabled() {
    return rowChecksums.queryRollback();
  }

  /**
   * Which checksums of rows an exchange keeps, and what Spark does if a repeated map task has
   * another one.
   *
   * @param compare whether it compares them, at least for the log
   * @param fullRetry whether it runs all map tasks and later stages again
   * @param queryRollback whether it also runs again all other stages of the query that read the
   *     output
   */
  public record RowChecksumMode(boolean compare, boolean fullRetry, boolean queryRollback)
      implements Serializable {
    /** No checksums. */
    public static final RowChecksumMode NONE = new RowChecksumMode(false, false, false);

    /** Whether writers compute checksums. */
    public boolean isComputed() {
      return compare || fullRetry;
    }
  }
}
