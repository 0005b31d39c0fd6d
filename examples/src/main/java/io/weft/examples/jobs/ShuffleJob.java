package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Reads rows, shuffles them by a key or not, and throws them away. The difference between the two
 * is the shuffle.
 *
 * @param source of the rows
 * @param partitions to shuffle into; 0: no shuffle
 * @param key the column whose hash says where a row goes
 */
public record ShuffleJob(Source source, int partitions, String key) implements SideTask<JobCost> {
  @Override
  public JobCost run(SparkSession session) throws Exception {
    Dataset<Row> rows = rows(session);
    return JobMeter.measure(
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

  /** The same job without the shuffle. */
  public ShuffleJob withoutShuffle() {
    return new ShuffleJob(source, 0, key);
  }
}
