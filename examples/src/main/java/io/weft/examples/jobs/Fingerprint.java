package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import org.apache.spark.sql.SparkSession;

/**
 * What came out of a shuffle, in a few characters: equal for equal rows in any order.
 *
 * @param job whose rows to look at
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
