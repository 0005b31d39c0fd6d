package io.weft.tests.support;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A Spark installation whose jars are links into Maven's local repository.
 *
 * @param folder the value of {@code SPARK_HOME}
 */
public record SparkHome(Path folder) {
  private static SparkHome shared;

  /** The home of the Spark that Weft is built against, without Weft; created once for all tests. */
  public static synchronized SparkHome shared() {
    if (shared == null) {
      shared = assembleOnce(BuildTree.target().resolve("spark-home"));
    }
    return shared;
  }

  /** Another JVM of the same build may need the home at the same time, or use it already. */
  private static SparkHome assembleOnce(Path folder) {
    Path lock = folder.resolveSibling("spark-home.lock");
    Path complete = folder.resolve("class-path");
    try (FileChannel file =
            FileChannel.open(lock, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        FileLock held = file.lock()) {
      String wanted = System.getProperty("java.vm.version") + " " + jars("default");
      if (Files.exists(complete) && Files.readString(complete).equals(wanted)) {
        return new SparkHome(folder);
      }
      Files.deleteIfExists(archive(folder));
      SparkHome home = assemble(folder, "default", List.of());
      ClassArchive.write(home, archive(folder));
      Files.writeString(complete, wanted);
      return home;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Creates a home and replaces an existing one.
   *
   * @param folder the path of the new home
   * @param distribution which class path: "default", "4.0", "4.2" or "connect"
   * @param moreJars copied beside Spark's own
   */
  public static SparkHome assemble(Path folder, String distribution, List<Path> moreJars) {
    try {
      Folders.delete(folder);
      Path jars = Files.createDirectories(folder.resolve("jars"));
      Files.createDirectories(folder.resolve("conf"));
      Files.writeString(folder.resolve("RELEASE"), "Spark " + distribution + "\n");
      for (Path jar : jars(distribution)) {
        Files.createSymbolicLink(jars.resolve(jar.getFileName()), jar);
      }
      for (Path jar : moreJars) {
        Files.copy(jar, jars.resolve(jar.getFileName()));
      }
      return new SparkHome(folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Options of a JVM whose class path begins with this home's: with an archive of parsed and
   * verified classes, a short application takes two thirds of the processor time. Empty without an
   * archive.
   */
  List<String> archiveOptions() {
    Path archive = archive(folder);
    return Files.exists(archive) ? List.of("-XX:SharedArchiveFile=" + archive) : List.of();
  }

  private static Path archive(Path folder) {
    return folder.resolveSibling(folder.getFileName() + ".jsa");
  }

  /**
   * The class path of a driver, master or worker of this home. It begins as that of the executors,
   * for which Spark puts one jar first, so that all of them can use one archive.
   */
  public String classPath() {
    Path jars = folder.resolve("jars");
    String first =
        Folders.tree(jars).stream()
            .filter(jar -> jar.getFileName().toString().startsWith("slf4j-api-"))
            .map(jar -> jar + File.pathSeparator)
            .collect(Collectors.joining());
    return folder.resolve("conf") + File.pathSeparator + first + jars + "/*";
  }

  /** The jars of a module whose name begins with {@code tests/spark-}. */
  static List<Path> jars(String distribution) throws IOException {
    Path file = BuildTree.root().resolve("tests/spark-" + distribution + "/target/class-path");
    try (Stream<String> entries =
        Stream.of(Files.readString(file).trim().split(File.pathSeparator))) {
      return entries.map(Path::of).toList();
    }
  }
}
