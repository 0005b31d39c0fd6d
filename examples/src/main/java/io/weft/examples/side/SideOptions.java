package io.weft.examples.side;

import io.weft.spark.config.SettingsCheck;
import io.weft.spark.config.WeftSettings;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.SparkConf;

/**
 * The configuration of a side. The sides of a comparison differ only in the settings of Weft.
 *
 * @param name short, fit for a file name
 * @param label the name in tables
 * @param driverMemory the driver's heap in the form of {@code java -Xmx}
 * @param conf Spark settings
 */
public record SideOptions(
    String name, String label, String driverMemory, Map<String, String> conf) {
  /** Two executor processes of one core each on this host. */
  public static final String CLUSTER = "local-cluster[2,1,2048]";

  private static final String MASTER = "spark.master";
  private static final String PLUGINS = "spark.plugins";
  private static final String TRANSPORT = "spark.weft.transport";
  private static final Set<String> CHOSEN = Set.of(MASTER, PLUGINS, TRANSPORT);
  private static final String PLUGIN = "io.weft.spark.WeftPlugin";

  public SideOptions {
    conf = Map.copyOf(conf);
  }

  /** Returns the same side with another name. Sides that run together need different names. */
  public SideOptions renamed(String newName) {
    return new SideOptions(newName, label, driverMemory, conf);
  }

  /** Spark with its own shuffle. */
  public static SideOptions spark(Map<String, String> common) {
    return new SideOptions("sort", "Spark", "1g", clustered(common));
  }

  /**
   * Spark with Weft.
   *
   * @param transport a value of spark.weft.transport
   */
  public static SideOptions weft(String transport, Map<String, String> common) {
    requireTransport(transport);
    String mode = transport.toLowerCase(Locale.ROOT);
    Map<String, String> conf = clustered(common);
    conf.put(PLUGINS, PLUGIN);
    conf.put(TRANSPORT, mode);
    // Off by default, but the workload of an RDD is there to measure it.
    conf.putIfAbsent("spark.weft.rdd.streams", "true");
    return new SideOptions("weft-" + mode, "Weft/" + mode, "1g", conf);
  }

  /**
   * Requires a value of spark.weft.transport, so that a wrong one ends a command at its start.
   *
   * @throws IllegalArgumentException if it is another text
   */
  public static void requireTransport(String transport) {
    try {
      WeftSettings.TRANSPORT.parse(transport);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "no transport %s; it must be %s".formatted(transport, WeftSettings.TRANSPORT.allowed()),
          e);
    }
  }

  /**
   * Requires settings that a user may give to both sides of a comparison.
   *
   * @throws IllegalArgumentException if one is none of Spark, is unknown to Weft, has a wrong
   *     value, or is chosen by the comparison itself
   */
  public static void requireCommon(Map<String, String> settings) {
    SparkConf conf = new SparkConf(false);
    for (Map.Entry<String, String> setting : settings.entrySet()) {
      String key = setting.getKey();
      if (!key.startsWith("spark.")) {
        throw new IllegalArgumentException(
            key + " is no setting of Spark: it has to begin with spark.");
      }
      if (CHOSEN.contains(key)) {
        throw new IllegalArgumentException(key + " cannot be set: the comparison chooses it");
      }
      conf.set(key, setting.getValue());
    }
    SettingsCheck.check(conf);
  }

  /** One process that writes tables. It ends before a measurement begins. */
  public static SideOptions writer() {
    return new SideOptions("writer", "the writer of tables", "3g", Map.of(MASTER, "local[*]"));
  }

  private static Map<String, String> clustered(Map<String, String> common) {
    Map<String, String> conf = new TreeMap<>(common);
    conf.put(MASTER, CLUSTER);
    // If executors cannot start, the run fails; Spark must not start them again without end.
    conf.put("spark.deploy.maxExecutorRetries", "2");
    return conf;
  }
}
