package io.weft.examples.side;

import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** The configurations that are compared. They differ in nothing but Weft's settings. */
public final class Sides {
  /** Two executor processes of one core each on this host. */
  public static final String CLUSTER = "local-cluster[2,1,2048]";

  private static final String PLUGIN = "io.weft.spark.WeftPlugin";

  private Sides() {}

  /** Spark as it comes. */
  public static SideOptions spark(Map<String, String> common) {
    return new SideOptions("sort", "Spark", "1g", clustered(common));
  }

  /**
   * Spark with Weft.
   *
   * @param transport a value of spark.weft.transport
   */
  public static SideOptions weft(String transport, Map<String, String> common) {
    String mode = transport.toLowerCase(Locale.ROOT);
    Map<String, String> conf = clustered(common);
    conf.put("spark.plugins", PLUGIN);
    conf.put("spark.weft.transport", mode);
    return new SideOptions("weft-" + mode, "Weft/" + mode, "1g", conf);
  }

  /** One process to write tables with; ended before anything is measured. */
  public static SideOptions writer() {
    return new SideOptions(
        "writer", "the writer of tables", "3g", Map.of("spark.master", "local[*]"));
  }

  private static Map<String, String> clustered(Map<String, String> common) {
    Map<String, String> conf = new TreeMap<>(common);
    conf.put("spark.master", CLUSTER);
    // Executors that cannot start should end the run, not be started again and again.
    conf.put("spark.deploy.maxExecutorRetries", "2");
    return conf;
  }
}
