package io.weft.spark.config;

import java.util.Optional;
import org.apache.spark.SparkConf;
import org.apache.spark.internal.plugin.PluginContainer;

/**
 * Whether Weft serves an application. The driver decides once, before it creates anything else, and
 * sends the decision to every executor with Spark's plugin context.
 *
 * @param inertReason why Weft is off, as one or two sentences; empty if it is on
 * @param otherRole what Weft does instead of carrying shuffles, as a sentence; empty if it carries
 *     them or is off
 */
public record Activation(Optional<String> inertReason, Optional<String> otherRole) {
  /** The plugin's class name, as users write it in {@code spark.plugins}. */
  public static final String PLUGIN = "io.weft.spark.WeftPlugin";

  /** Class name of the shuffle manager that the plugin sets. */
  public static final String MANAGER = "io.weft.spark.shuffle.WeftShuffleManager";

  public static final String MANAGER_KEY = "spark.shuffle.manager";

  /** Key of the flag that Weft carries shuffles, from the driver to the executors. */
  public static final String ACTIVE = "active";

  /** Key of the flag that executors start Weft, to carry shuffles or for another role. */
  public static final String RUNS = "runs";

  public static final String APPLICATION_KEY = "applicationKey";
  public static final String VERSION = "version";

  /** An activation without another role: on, or off for this reason. */
  public Activation(Optional<String> inertReason) {
    this(inertReason, Optional.empty());
  }

  /** Decides from the settings that the user made for the application. */
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
            "spark.dynamicAllocation.enabled removes idle executors because the external shuffle"
                + " service (spark.shuffle.service.enabled) serves their output, and that"
                + " service does not serve Weft's blocks. Spark's sort shuffle carries every"
                + " shuffle; use"
                + " spark.dynamicAllocation.shuffleTracking.enabled instead of the service.")
        : Optional.empty();
  }

  private static Optional<String> oldFetchProtocol(SparkConf conf) {
    return conf.getBoolean("spark.shuffle.useOldFetchProtocol", false)
        ? Optional.of(
            "spark.shuffle.useOldFetchProtocol is true, so two attempts of a map task cannot be"
                + " distinguished. Spark's sort shuffle carries every shuffle.")
        : Optional.empty();
  }
}
