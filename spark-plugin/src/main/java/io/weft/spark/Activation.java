package io.weft.spark;

import io.weft.spark.shuffle.WeftShuffleManager;
import java.util.Optional;
import org.apache.spark.SparkConf;
import org.apache.spark.internal.plugin.PluginContainer;

/**
 * Whether Weft serves an application. The driver decides once, before anything else is made, and
 * tells every executor by Spark's own way for plugins.
 *
 * @param inertReason why Weft stays off, as a whole sentence or two; empty if it is on
 */
public record Activation(Optional<String> inertReason) {
  static final String MANAGER_KEY = "spark.shuffle.manager";

  /** Keys of what the driver side hands to the executor side. */
  static final String ACTIVE = "active";

  static final String APPLICATION_KEY = "applicationKey";
  static final String VERSION = "version";

  /** Decides by the application's settings as the user made them. */
  static Activation decide(SparkConf conf) {
    return new Activation(
        foreignManager(conf).or(() -> encryption(conf)).or(() -> oldFetchProtocol(conf)));
  }

  /** Whether the driver of this application decided that Weft is on. */
  public static boolean isActive(SparkConf conf) {
    return conf.getBoolean(
        PluginContainer.EXTRA_CONF_PREFIX() + WeftPlugin.class.getName() + "." + ACTIVE, false);
  }

  boolean isActive() {
    return inertReason.isEmpty();
  }

  private static Optional<String> foreignManager(SparkConf conf) {
    String manager = conf.get(MANAGER_KEY, WeftShuffleManager.class.getName());
    return manager.equals(WeftShuffleManager.class.getName())
        ? Optional.empty()
        : Optional.of(
            MANAGER_KEY
                + " is set to '"
                + manager
                + "', so that manager carries every shuffle and no plan is changed. Remove that"
                + " setting to let Weft carry SQL shuffles.");
  }

  private static Optional<String> encryption(SparkConf conf) {
    return conf.getBoolean("spark.io.encryption.enabled", false)
        ? Optional.of(
            "spark.io.encryption.enabled is true, and Weft's segments, which may lie on disk, are"
                + " not encrypted. Spark's sort shuffle carries every shuffle.")
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
