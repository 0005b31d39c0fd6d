package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Reads rows, shuffles them by a key or not, and discards them. The shuffle costs the difference of
 * the two.
 *
 * @param source of the rows
 * @param partitions to shuffle into; 0: no shuffle
 * @param key the column whose hash determines the partition of a row
 */
public record ShuffleJob(Source source, int partitions, String key) implements SideTask<JobCost> {
  @Override
  public JobCost run(SparkSession session) throws Exception {
    Dataset<Row> rows = rows(session);
    return JobCost.Meter.measure(
            session.sparkContext(),
            () -> {
              rows.write().format("noop").mode("overwrite").save();
              return rows;
            })
        .cost();
  }

  Dataset<Row> rows(SparkSession session) {
    Dataset<Row> rows = source.rows(session);
    return partitions == 0 ? rows : rows.repartition(partitions, functions.col(key));
  }

  /** Returns the same job without the shuffle. */
  public ShuffleJob withoutShuffle() {
    return new ShuffleJob(source, 0, key);
  }

  /** The source of the rows of a job. */
  public sealed interface Source extends Serializable {
    /** Returns the rows, not yet read. */
    Dataset<Row> rows(SparkSession session);

    /**
     * A folder of Parquet.
     *
     * @param folder of the files
     */
    record Parquet(String folder) implements Source {
      @Override
      public Dataset<Row> rows(SparkSession session) {
        return session.read().parquet(folder);
      }
    }

    /**
     * Rows computed from a counter column named id.
     *
     * @param count of rows
     * @param partitions the number of map tasks
     * @param expressions of the columns
     */
    record Computed(long count, int partitions, List<String> expressions) implements Source {
      @Override
      public Dataset<Row> rows(SparkSession session) {
        return session
            .range(0, count, 1, partitions)
            .selectExpr(expressions.toArray(String[]::new));
      }
    }
  }

  /**
   * Computes a short fingerprint of the rows of a shuffle. Equal rows in any order have equal
   * fingerprints.
   *
   * @param job whose rows are read
   */
  public record Fingerprint(ShuffleJob job) implements SideTask<String> {
    @Override
    public String run(SparkSession session) {
      return job.rows(session)
          .selectExpr("xxhash64(*) as hash")
          .selectExpr("count(*)", "bit_xor(hash)", "sum(cast(hash as decimal(20, 0)))")
          .first()
          .mkString("/");
    }
  }
}
