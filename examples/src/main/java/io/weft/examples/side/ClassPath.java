package io.weft.examples.side;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * This process's class path in two parts.
 *
 * @param spark the jars of Spark and what it needs: what the {@code jars} folder of a Spark home
 *     holds
 * @param user what a user adds: Weft's jar, the examples and their libraries
 */
public record ClassPath(List<Path> spark, List<Path> user) {
  private static final List<String> USER_JARS =
      List.of("weft-", "tpch-", "picocli-", "HdrHistogram-");

  public ClassPath {
    spark = List.copyOf(spark);
    user = List.copyOf(user);
  }

  /** The class path of this process. */
  public static ClassPath current() {
    return split(
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(entry -> !entry.isEmpty())
            .map(Path::of)
            .filter(Files::exists)
            .toList());
  }

  /** Sorts the entries; folders of classes are the user's. */
  static ClassPath split(List<Path> entries) {
    List<Path> spark = new ArrayList<>();
    List<Path> user = new ArrayList<>();
    for (Path entry : entries) {
      String name = entry.getFileName().toString();
      boolean users = Files.isDirectory(entry) || USER_JARS.stream().anyMatch(name::startsWith);
      (users ? user : spark).add(entry.toAbsolutePath());
    }
    return new ClassPath(spark, user);
  }

  /**
   * Whether executors can be given the user's part as {@code spark.jars}, which takes no folders.
   */
  public boolean allJars() {
    return user.stream().allMatch(Files::isRegularFile);
  }
}
