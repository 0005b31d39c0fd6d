package io.weft.compat;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * A program whose result must not depend on the shuffle.
 *
 * @param name shown to the user
 * @param master Spark's master
 * @param sessions how often it runs, each time in a new session
 * @param settings of the application
 * @param body the program
 */
record Program(String name, String master, int sessions, Map<String, String> settings, Body body) {
  private static final String CLUSTER = "local-cluster[2,2,1024]";

  /** Runs in a session. */
  interface Body {
    /**
     * Returns the result, in an order of its own.
     *
     * @param folder empty, for the program's files
     */
    List<String> run(SparkSession session, Path folder) throws Exception;
  }

  /** A program for two executors. */
  static Program of(String name, Map<String, String> settings, Body body) {
    return new Program(name, CLUSTER, 1, settings, body);
  }

  /** Adds the settings with which RDDs also go through Weft. */
  Program withKryo() {
    Map<String, String> all = new HashMap<>(settings);
    all.put("spark.serializer", "org.apache.spark.serializer.KryoSerializer");
    all.put("spark.kryo.registrator", "io.weft.spark.WeftKryoRegistrator");
    return new Program(name, master, sessions, all, body);
  }

  /** Runs several times, each in a new session without other processes. */
  Program repeated(int times) {
    return new Program(name, "local[2]", times, settings, body);
  }

  /** The rows as sorted texts. */
  static List<String> sorted(Dataset<Row> rows) {
    return rows.toJSON().collectAsList().stream().sorted().toList();
  }
}
