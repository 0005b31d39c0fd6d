package io.weft.spark.rapids;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Optional;
import java.util.Properties;

/**
 * The spark-rapids jar that a class loader sees: its version, and whether Weft's transport is
 * compatible with its classes. Loads none of its classes. The jar has one folder of classes for
 * each Spark version.
 */
final class RapidsJar {
  private static final String VERSION_FILE = "rapids4spark-version-info.properties";
  private static final String PLUGIN_FILE = "com/nvidia/spark/SQLPlugin.class";
  static final String TRAIT = "com/nvidia/spark/rapids/shuffle/RapidsShuffleTransport";

  /** The version whose traits the stubs declare. */
  private static final String KNOWN_VERSION = "26.08.1";

  private static final int MOST_PROBLEMS = 3;

  private final ClassLoader loader;
  private final String shim;

  /**
   * Creates a view of a loader; reads nothing yet.
   *
   * @param shim the folder of the Spark version, for example spark413
   */
  RapidsJar(ClassLoader loader, String shim) {
    this.loader = loader;
    this.shim = shim;
  }

  /** Why Weft cannot be the transport; empty if it can. */
  Optional<String> obstacle() {
    if (loader.getResource(PLUGIN_FILE) == null) {
      return Optional.of(
          "it is not on the driver's class path. Add com.nvidia:rapids-4-spark_2.13:"
              + KNOWN_VERSION
              + " by spark.jars.");
    }
    ClassFiles foreign = ClassFiles.of(loader, List.of("", shim + "/", "spark-shared/"));
    if (foreign.read(TRAIT).isEmpty()) {
      return Optional.of(
          "%s has no classes for %s. Is that the shuffle manager of this version of Spark?"
              .formatted(this, shim));
    }
    List<String> problems =
        new LinkCheck(ClassFiles.of(RapidsJar.class.getClassLoader(), List.of("")), foreign)
            .problems(RapidsRole.TRANSPORT);
    return problems.isEmpty()
        ? Optional.empty()
        : Optional.of(
            "Weft is built for spark-rapids %s, and %s differs from it: %s."
                .formatted(KNOWN_VERSION, this, shortened(problems)));
  }

  private static String shortened(List<String> problems) {
    String first = String.join("; ", problems.subList(0, Math.min(MOST_PROBLEMS, problems.size())));
    int more = problems.size() - MOST_PROBLEMS;
    return more > 0 ? first + "; and " + more + " more" : first;
  }

  /** For example "spark-rapids 26.08.1". */
  @Override
  public String toString() {
    Properties properties = new Properties();
    try (InputStream in = loader.getResourceAsStream(VERSION_FILE)) {
      if (in != null) {
        properties.load(in);
      }
    } catch (IOException e) {
      return "spark-rapids of a version that cannot be read (" + e.getMessage() + ")";
    }
    return "spark-rapids " + properties.getProperty("version", "of an unknown version");
  }
}
