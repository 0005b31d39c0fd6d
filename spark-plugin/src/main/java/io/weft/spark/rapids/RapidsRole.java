package io.weft.spark.rapids;

import io.weft.shuffle.peer.TransportMode;
import io.weft.spark.config.Activation;
import io.weft.spark.config.PathSettings;
import io.weft.spark.config.WeftSettings;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;

/**
 * Decides whether Weft is the transport of spark-rapids in an application. It is if the user has
 * set spark-rapids' shuffle manager and nothing prevents it. Loads no class of spark-rapids.
 * Stateless.
 */
public final class RapidsRole {
  /** The class name by which spark-rapids creates the transport. */
  static final String TRANSPORT = "io.weft.spark.rapids.WeftRapidsTransport";

  static final String RAPIDS_PLUGIN = "com.nvidia.spark.SQLPlugin";

  /** The required value of spark.plugins; the order matters. */
  static final String PLUGINS = Activation.PLUGIN + "," + RAPIDS_PLUGIN;

  private static final String MODE_KEY = "spark.rapids.shuffle.mode";
  private static final String MODE = "UCX";
  private static final String TRANSPORT_KEY = "spark.rapids.shuffle.transport.class";
  private static final String PLUGINS_KEY = "spark.plugins";

  private static final Pattern MANAGER =
      Pattern.compile("com\\.nvidia\\.spark\\.rapids\\.(spark\\w+)\\.RapidsShuffleManager");

  /** With any of these settings, spark-rapids leaves all shuffles to Spark. */
  private static final List<String> REFUSED_BY_RAPIDS =
      List.of(
          "spark.authenticate",
          "spark.shuffle.service.enabled",
          "spark.sql.shuffle.orderIndependentChecksum.enabled",
          "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch");

  private RapidsRole() {}

  /** Whether the user has set spark-rapids' shuffle manager. */
  public static boolean isAskedFor(SparkConf conf) {
    return manager(conf).matches();
  }

  private static Matcher manager(SparkConf conf) {
    return MANAGER.matcher(conf.get(Activation.MANAGER_KEY, "").trim());
  }

  /** Decides for an application that has set spark-rapids' shuffle manager. */
  public static Activation decide(SparkConf conf) {
    ClassLoader context = Thread.currentThread().getContextClassLoader();
    return decide(conf, context == null ? RapidsRole.class.getClassLoader() : context);
  }

  /**
   * As {@link #decide(SparkConf)}.
   *
   * @param loader of spark-rapids' classes
   */
  static Activation decide(SparkConf conf, ClassLoader loader) {
    Matcher manager = manager(conf);
    if (!manager.matches()) {
      throw new IllegalArgumentException(
          Activation.MANAGER_KEY + " is not a shuffle manager of spark-rapids");
    }
    RapidsJar jar = new RapidsJar(loader, manager.group(1));
    Optional<String> obstacle =
        mode(conf)
            .or(() -> transport(conf))
            .or(() -> plugins(conf))
            .or(() -> refusedByRapids(conf))
            .or(() -> encryption(conf))
            .or(() -> withoutGpus(conf))
            .or(jar::obstacle);
    return obstacle.isPresent()
        ? new Activation(Optional.of(withoutWeft(obstacle.get())))
        : new Activation(
            Optional.empty(),
            Optional.of(
                ("%s keeps tables on the GPU and carries the shuffles; Weft moves the tables"
                        + " between executors, as its transport.")
                    .formatted(jar)));
  }

  private static String withoutWeft(String obstacle) {
    return Activation.MANAGER_KEY
        + " is spark-rapids' manager, but Weft cannot be its transport: "
        + obstacle;
  }

  /** Sets the settings that spark-rapids reads later. */
  public static void setUp(SparkConf conf) {
    conf.set(MODE_KEY, MODE);
    conf.set(TRANSPORT_KEY, TRANSPORT);
  }

  /**
   * Why an executor cannot create the transport although the driver found no obstacle; empty if no
   * reason is known. spark-rapids adds its classes for one Spark version to the class loader of the
   * application's jars, and only classes of that loader see them.
   *
   * @param own the loader of Weft's classes
   */
  public static Optional<String> misplaced(ClassLoader own) {
    boolean isPlain = own == ClassLoader.getSystemClassLoader();
    return isPlain && own.getResource(RapidsJar.TRAIT + ".class") == null
        ? Optional.of(
            "Weft's jar is on the JVM's own class path, where classes do not see those of"
                + " spark-rapids for one Spark version. Give it by --jars or spark.jars, not by"
                + " spark.executor.extraClassPath")
        : Optional.empty();
  }

  /** Advice for a user of both plugins who has not set spark-rapids' manager. */
  public static Optional<String> advice(SparkConf conf) {
    return plugins(conf.get(PLUGINS_KEY, "")).contains(RAPIDS_PLUGIN)
        ? Optional.of(
            ("%s has %s, but %s is not set: Weft carries the shuffles in memory of the hosts. To"
                    + " keep tables on the GPU, set it to"
                    + " com.nvidia.spark.rapids.spark<version>.RapidsShuffleManager, such as spark413"
                    + " for Spark 4.1.3; Weft then is its transport.")
                .formatted(PLUGINS_KEY, RAPIDS_PLUGIN, Activation.MANAGER_KEY))
        : Optional.empty();
  }

  private static List<String> plugins(String setting) {
    return Arrays.stream(setting.split(",")).map(String::trim).toList();
  }

  private static Optional<String> mode(SparkConf conf) {
    String mode = conf.get(MODE_KEY, MODE);
    return mode.equalsIgnoreCase(MODE)
        ? Optional.empty()
        : Optional.of(
            "%s is '%s', which has no transport. Remove that setting, or set it to %s."
                .formatted(MODE_KEY, mode, MODE));
  }

  private static Optional<String> transport(SparkConf conf) {
    String transport = conf.get(TRANSPORT_KEY, TRANSPORT);
    return transport.equals(TRANSPORT)
        ? Optional.empty()
        : Optional.of(
            "%s is '%s'. Remove that setting, or set it to %s."
                .formatted(TRANSPORT_KEY, transport, TRANSPORT));
  }

  private static Optional<String> plugins(SparkConf conf) {
    List<String> plugins = plugins(conf.get(PLUGINS_KEY, ""));
    int weft = plugins.indexOf(Activation.PLUGIN);
    int rapids = plugins.indexOf(RAPIDS_PLUGIN);
    return rapids > weft
        ? Optional.empty()
        : Optional.of(
            ("%s is '%s'. Set it to %s: Weft comes first, because spark-rapids reads its settings"
                    + " when it starts.")
                .formatted(PLUGINS_KEY, conf.get(PLUGINS_KEY, ""), PLUGINS));
  }

  private static Optional<String> refusedByRapids(SparkConf conf) {
    return REFUSED_BY_RAPIDS.stream()
        .filter(key -> conf.getBoolean(key, false))
        .findFirst()
        .map(key -> key + " is true, with which spark-rapids leaves all shuffles to Spark's own.");
  }

  private static Optional<String> encryption(SparkConf conf) {
    return PathSettings.isNetworkEncrypted(conf)
        ? Optional.of(
            "Spark encrypts its network, and neither NCCL nor the sockets beside it encrypt what"
                + " goes between GPUs.")
        : Optional.empty();
  }

  private static Optional<String> withoutGpus(SparkConf conf) {
    return WeftSettings.TRANSPORT.get(conf) == TransportMode.AUTO
        ? Optional.empty()
        : Optional.of(WeftSettings.TRANSPORT + " has to be auto for Weft to look for GPUs.");
  }
}
