package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.SparkSession;

/**
 * Registers Parquet tables under their names.
 *
 * @param folder of the tables, a subfolder for each
 * @param names of the tables
 */
public record OpenTables(String folder, List<String> names) implements SideTask<Integer> {
  @Override
  public Integer run(SparkSession session) {
    for (String name : names) {
      session.read().parquet(Path.of(folder, name).toString()).createOrReplaceTempView(name);
    }
    return names.size();
  }
}
