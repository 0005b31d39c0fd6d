package io.weft.spark.config;

import java.util.Optional;
import org.apache.spark.SparkConf;
import org.apache.spark.internal.plugin.PluginContainer;

/**
 * Whether Weft serves an application. The driver decides once, before anything else is made, and
 * tells every executor by Spark's own way for plugins.
 *
 * @param inertReason why Weft stays off, as a whole sentence or two; empty if it is on
 * @param otherRole what Weft does instead of carrying shuffles, as a whole sentence; empty if it
 *     carries them, or is off
 */
public record Activation(Optional<String> inertReason, Optional<String> otherRole) {
  /** The plugin, by the name that users give Spark. */
  public static final String PLUGIN = "io.weft.spark.WeftPlugin";

  /** The shuffle manager that the plugin asks Spark for. */
  public static final String MANAGER = "io.weft.spark.shuffle.WeftShuffleManager";

  public static final String MANAGER_KEY = "spark.shuffle.manager";

  /** Keys of what the driver side hands to the executor side. */
  public static final String ACTIVE = "active";

  /** True where executors start Weft, whether it carries shuffles or has another role. */
  public static final String RUNS = "runs";

  public static final String APPLICATION_KEY = "applicationKey";
  public static final String VERSION = "version";

  /** On, or off for this reason. */
  public Activation(Optional<String> inertReason) {
    this(inertReason, Optional.empty());
  }

  /** Decides by the application's settings as the user made them. */
  public static Activation decide(SparkConf conf) {
    return new Activation(
        foreignManager(conf).or(() -> oldFetchProtocol(conf)).or(() -> externalService(conf)));
  }

  /** Whether the driver of this application decided that Weft carries its shuffles. */
  public static boolean isActive(SparkConf conf) {
    return conf.getBoolean(PluginContainer.EXTRA_CONF_PREFIX() + PLUGIN + "." + ACTIVE, false);
  }

  /** Whether Weft carries shuffles. */
  public boolean isActive() {
    return runs() && otherRole.isEmpty();
  }

  /** Whether executors start Weft. */
  public boolean runs() {
    return inertReason.isEmpty();
  }

  private static Optional<String> foreignManager(SparkConf conf) {
    String manager = conf.get(MANAGER_KEY, MANAGER);
    return manager.equals(MANAGER)
        ? Optional.empty()
        : Optional.of(
            MANAGER_KEY
                + " is set to '"
                + manager
                + "', so that manager carries every shuffle and no plan is changed. Remove that"
                + " setting to let Weft carry SQL shuffles.");
  }

  private static Optional<String> externalService(SparkConf conf) {
    return conf.getBoolean("spark.shuffle.service.enabled", false)
            && conf.getBoolean("spark.dynamicAllocation.enabled", false)
        ? Optional.of(
            "spark.dynamicAllocation.enabled removes idle executors because"
                + " spark.shuffle.service.enabled serves what they wrote, and that service does not"
                + " serve Weft's blocks. Spark's sort shuffle carries every shuffle; use"
                + " spark.dynamicAllocation.shuffleTracking.enabled instead of the service.")
        : Optional.empty();
  }

  private static Optional<String> oldFetchProtocol(SparkConf conf) {
    return conf.getBoolean("spark.shuffle.useOldFetchProtocol", false)
        ? Optional.of(
            "spark.shuffle.useOldFetchProtocol is true, with which two attempts of a map task"
                + " cannot be told apart. Spark's sort shuffle carries every shuffle.")
        : Optional.empty();
  }
}
