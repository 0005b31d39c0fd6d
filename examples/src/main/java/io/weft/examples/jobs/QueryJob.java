package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import org.apache.spark.sql.SparkSession;

/**
 * Runs a query for its cost alone.
 *
 * @param text the SQL
 */
public record QueryJob(String text) implements SideTask<JobCost> {
  @Override
  public JobCost run(SparkSession session) throws Exception {
    return new RunQuery(text).run(session).cost();
  }
}
