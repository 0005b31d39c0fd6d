package io.weft.tests.support;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Paths of build outputs that the tests need. */
public final class BuildTree {
  private BuildTree() {}

  /** The root of the checkout. */
  public static Path root() {
    return Path.of(property("weft.rootFolder"));
  }

  /** The output folder of the module {@code tests}. */
  public static Path target() {
    return root().resolve("tests/target");
  }

  /** Weft's version, as in the POM. */
  public static String weftVersion() {
    return property("weft.projectVersion");
  }

  /** The version of Spark that Weft was built against. */
  public static String sparkVersion() {
    return property("spark.version");
  }

  /** The one jar that a user adds to Spark. */
  public static Path weftJar() {
    return jar("spark-plugin/target/weft-spark-");
  }

  /** The jar of the examples. */
  public static Path examplesJar() {
    return jar("examples/target/weft-examples-");
  }

  private static Path jar(String beginning) {
    Path jar = root().resolve(beginning + weftVersion() + ".jar");
    if (!Files.isRegularFile(jar)) {
      throw new IllegalStateException(
          jar + " is missing: system tests run after packaging, with mvn verify");
    }
    return jar;
  }

  /** Packages that spark-submit opens for a JVM; a JVM started by hand has to open them itself. */
  public static String[] jvmOpens() {
    return property("weft.jvmOpens").split(" ");
  }

  /** A new empty folder below target/work. */
  public static Path newFolder(String name) {
    try {
      return Files.createTempDirectory(
          Files.createDirectories(target().resolve("work")), name + "-");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A folder below target/work that the JVMs of one build share. */
  public static Path folderOfThisBuild(String name) {
    String build = System.getProperty("weft.buildStart", "pid-" + ProcessHandle.current().pid());
    Path folder = target().resolve("work").resolve(name + "-" + build.replace(':', '-'));
    try {
      return Files.createDirectories(folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String property(String name) {
    String value = System.getProperty(name);
    if (value == null) {
      throw new IllegalStateException("The system property " + name + " is missing: Maven sets it");
    }
    return value;
  }
}
