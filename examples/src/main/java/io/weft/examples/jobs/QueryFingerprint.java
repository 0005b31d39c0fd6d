package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.util.List;
import org.apache.spark.sql.SparkSession;

/**
 * What a query returns, in a few characters: equal for equal rows in any order.
 *
 * @param text the SQL
 */
public record QueryFingerprint(String text) implements SideTask<String> {
  @Override
  public String run(SparkSession session) throws Exception {
    List<String> rows = new RunQuery(text).run(session).rows().stream().sorted().toList();
    return rows.size() + "/" + rows.hashCode();
  }
}
