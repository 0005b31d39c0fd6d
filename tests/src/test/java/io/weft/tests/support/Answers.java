package io.weft.tests.support;

import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import io.weft.tests.workload.Tables;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;

/**
 * The expected answers of the queries from Spark's own shuffle, each computed once for all tests of
 * this JVM.
 *
 * <p>For the single thread that runs the tests.
 */
public final class Answers {
  private static final Path TABLES = BuildTree.newFolder("tables").resolve("parquet");
  private static final Map<String, List<String>> ANSWERS = new HashMap<>();
  private static boolean tablesWritten;

  private Answers() {}

  /** The folder of the tables' Parquet files. */
  public static Path tables() {
    if (!tablesWritten) {
      throw new IllegalStateException("Answers.prepare has not been called");
    }
    return TABLES;
  }

  /** Writes the tables and runs the queries without an answer yet. No session may be open. */
  public static void prepare(List<Query> queries) {
    List<Query> open =
        queries.stream().filter(query -> !ANSWERS.containsKey(query.name())).toList();
    if (tablesWritten && open.isEmpty()) {
      return;
    }
    Workspace workspace = new Workspace();
    workspace.open("answers");
    SparkSession session = Sessions.plain(workspace);
    try {
      ask(session, open);
    } finally {
      session.stop();
    }
    workspace.close();
  }

  private static void ask(SparkSession session, List<Query> queries) {
    if (!tablesWritten) {
      Folders.delete(TABLES);
      Tables.writeParquet(session, TABLES);
      tablesWritten = true;
    }
    Tables.register(session, TABLES);
    Queries.configure(session, true);
    for (Query query : queries) {
      ANSWERS.put(query.name(), query.run(session));
    }
  }

  /** The rows of a prepared query, in the form of {@link Query#run}. */
  public static List<String> of(Query query) {
    List<String> answer = ANSWERS.get(query.name());
    if (answer == null) {
      throw new IllegalArgumentException("Not prepared: " + query.name());
    }
    return answer;
  }
}
