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
  private static final String KRYO = "org.apache.spark.serializer.KryoSerializer";
  private static final String STREAMS = "spark.weft.rdd.streams";

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

  /** Adds the settings with which RDDs that neither aggregate nor sort go through Weft. */
  Program withKryo() {
    String registrator = "io.weft.spark.WeftKryoRegistrator";
    return with("", Map.of("spark.serializer", KRYO, "spark.kryo.registrator", registrator));
  }

  /** Adds the settings with which all RDDs go through Weft, as streams of Java's serializer. */
  Program withStreams() {
    return with(" as streams", Map.of(STREAMS, "true"));
  }

  /** Adds the settings with which all RDDs go through Weft, as streams of Kryo. */
  Program withKryoStreams() {
    return with(" as streams of Kryo", Map.of(STREAMS, "true", "spark.serializer", KRYO));
  }

  /** Whether its RDDs have to go through Weft as streams. */
  boolean streams() {
    return settings.containsKey(STREAMS);
  }

  private Program with(String more, Map<String, String> moreSettings) {
    Map<String, String> all = new HashMap<>(settings);
    all.putAll(moreSettings);
    return new Program(name + more, master, sessions, all, body);
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
