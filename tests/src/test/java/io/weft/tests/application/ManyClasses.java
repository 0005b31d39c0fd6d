package io.weft.tests.application;

import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import io.weft.tests.workload.Tables;
import java.nio.file.Path;
import org.apache.spark.sql.SparkSession;

/**
 * Runs a little of everything in one JVM, so that the JVM loads the classes that drivers and
 * executors of the system tests need. The argument is a folder for the tables, which is created.
 */
public final class ManyClasses {
  private static final String EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend";

  private ManyClasses() {}

  /** Runs queries, then loads the main class of executors. */
  public static void main(String[] arguments) throws ClassNotFoundException {
    SparkSession session = SparkSession.builder().getOrCreate();
    try {
      Path tables = Path.of(arguments[0]);
      Tables.writeParquet(session, tables);
      Tables.register(session, tables);
      Queries.configure(session, true);
      for (Query query : Queries.compact()) {
        query.run(session);
      }
    } finally {
      session.stop();
    }
    Class.forName(EXECUTOR);
  }
}
