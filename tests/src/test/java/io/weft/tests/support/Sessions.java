package io.weft.tests.support;

import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.Utils$;

/** Sessions in this JVM: plain ones, whose answers count as right, and ones with Weft. */
public final class Sessions {
  /** The plugin that enables Weft. */
  public static final String PLUGIN = "io.weft.spark.WeftPlugin";

  private Sessions() {}

  /** Starts plain Spark, in this JVM alone. */
  public static SparkSession plain(Workspace workspace) {
    return start(workspace, "local[2]", Map.of());
  }

  /**
   * Starts Weft on a master. The jar comes by {@code spark.jars}, and {@code spark.plugins} is the
   * only setting.
   *
   * @param more further settings, which take precedence
   */
  public static SparkSession weft(Workspace workspace, String master, Map<String, String> more) {
    SparkSession.Builder builder = builder(workspace, master).config("spark.plugins", PLUGIN);
    builder.config("spark.jars", BuildTree.weftJar() + "," + ApplicationJar.get());
    more.forEach(builder::config);
    return builder.getOrCreate();
  }

  /** Starts Spark without Weft on a master. */
  public static SparkSession start(Workspace workspace, String master, Map<String, String> more) {
    SparkSession.Builder builder = builder(workspace, master);
    builder.config("spark.jars", ApplicationJar.get().toString());
    more.forEach(builder::config);
    return builder.getOrCreate();
  }

  private static SparkSession.Builder builder(Workspace workspace, String master) {
    SparkHome home = SparkHome.shared();
    // Spark keeps the local folders of the JVM's first application for all later ones.
    Utils$.MODULE$.clearLocalRootDirs();
    SparkSession.Builder builder =
        SparkSession.builder()
            .master(master)
            .appName(workspace.folder().getFileName().toString())
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.executor.extraJavaOptions", Jvm.executorOptions(home))
            // Room for the compiled code of all queries, which run once for each route.
            .config("spark.sql.codegen.cache.maxEntries", "2000")
            // How often, and how long, Spark checks whether a lost executor's replacement is
            // available for the tasks of a barrier stage.
            .config("spark.scheduler.barrier.maxConcurrentTasksCheck.interval", "1s")
            .config("spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures", "180");
    workspace.settings().forEach(builder::config);
    return builder;
  }
}
