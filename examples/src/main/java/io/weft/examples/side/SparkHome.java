package io.weft.examples.side;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Makes a Spark home out of jars from anywhere: local-cluster and standalone workers start
 * executors from one. It holds links to the jars, a RELEASE file (without it Spark's launcher looks
 * for a source tree) and the settings of the executors' log.
 */
public final class SparkHome {
  /** The environment variable without which Spark's launcher looks for a source tree. */
  public static final String SCALA_VERSION_VARIABLE = "SPARK_SCALA_VERSION";

  /** The Scala line that Spark 4 is built with. */
  public static final String SCALA_VERSION = "2.13";

  private SparkHome() {}

  /** Fills a folder, which must not hold jars yet, and returns it. */
  public static Path assemble(Path folder, List<Path> jars) throws IOException {
    Path jarFolder = Files.createDirectories(folder.resolve("jars"));
    for (Path jar : jars) {
      // Two libraries may have a file of the same name; the folder they come from tells them apart.
      Path link = jarFolder.resolve(jar.getFileName());
      if (Files.exists(link)) {
        link = jarFolder.resolve(Integer.toHexString(jar.hashCode()) + "-" + jar.getFileName());
      }
      Files.createSymbolicLink(link, jar);
    }
    Files.writeString(folder.resolve("RELEASE"), "Spark, assembled from its Maven jars\n");
    return folder;
  }
}
