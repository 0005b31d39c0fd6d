package io.weft.examples.side;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.launcher.JavaModuleOptions;

/** Starts sides that share a class path. Sides differ only in their options. For one thread. */
public final class SideLauncher {
  private static final String LOG_SETTINGS = "log4j2.properties";

  private final WorkFolder work;
  private final ClassPath classPath;

  private SideLauncher(WorkFolder work, ClassPath classPath) {
    this.work = work;
    this.classPath = classPath;
  }

  /** Prepares a work folder to start sides with the class path of this process. */
  public static SideLauncher create(WorkFolder work) throws IOException {
    Files.writeString(
        work.path().resolve(LOG_SETTINGS),
        """
        rootLogger.level = warn
        rootLogger.appenderRef.stderr.ref = stderr
        appender.stderr.type = Console
        appender.stderr.name = stderr
        appender.stderr.target = SYSTEM_ERR
        appender.stderr.layout.type = PatternLayout
        appender.stderr.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
        """);
    return new SideLauncher(work, ClassPath.current());
  }

  /**
   * Starts a side, which the caller closes. {@link SideProcess#awaitReady} waits until it is ready.
   */
  public SideProcess start(SideOptions options) throws IOException {
    Path log = work.folder("logs").resolve(options.name() + ".log");
    // Each side needs its own home. Two clusters that start in the same second give their
    // applications the same name, and workers keep logs in folders of that name in their home.
    Path home = SparkHome.assemble(work.folder("spark-" + options.name()), classPath.spark());
    ProcessBuilder builder = new ProcessBuilder(command(options));
    builder.redirectError(log.toFile()).directory(work.path().toFile());
    environment(builder.environment(), home);
    SideProcess.SideLogs logs = new SideProcess.SideLogs(log, home.resolve("work"));
    return new SideProcess(options, builder.start(), logs, settings(options));
  }

  private List<String> command(SideOptions options) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Xmx" + options.driverMemory());
    command.addAll(List.of(JavaModuleOptions.defaultModuleOptionArray()));
    command.add("-Djava.io.tmpdir=" + work.folder("tmp"));
    command.add("-Dlog4j2.configurationFile=" + logSettings());
    command.add(SideMain.class.getName());
    return command;
  }

  private void environment(Map<String, String> environment, Path home) {
    // As an environment variable the long class path does not appear in lists of processes.
    environment.put(
        "CLASSPATH",
        Stream.concat(classPath.user().stream(), classPath.spark().stream())
            .map(Path::toString)
            .collect(Collectors.joining(File.pathSeparator)));
    environment.put("SPARK_HOME", home.toString());
    environment.put(SparkHome.SCALA_VERSION_VARIABLE, SparkHome.SCALA_VERSION);
    // Sides use loopback only, independent of the address that the host name resolves to.
    environment.put("SPARK_LOCAL_IP", "127.0.0.1");
    for (String inherited : List.of("SPARK_CONF_DIR", "SPARK_LOCAL_DIRS", "JAVA_TOOL_OPTIONS")) {
      environment.remove(inherited);
    }
  }

  private Map<String, String> settings(SideOptions options) throws IOException {
    Map<String, String> settings = new HashMap<>();
    settings.put("spark.app.name", "weft-" + options.name());
    settings.put("spark.ui.enabled", "false");
    settings.put("spark.driver.host", "127.0.0.1");
    settings.put("spark.local.dir", work.folder("local-" + options.name()).toString());
    settings.put("spark.sql.warehouse.dir", work.path().resolve("warehouse").toString());
    String executorOptions =
        "-Dlog4j2.configurationFile=" + logSettings() + " -Djava.io.tmpdir=" + work.folder("tmp");
    settings.put("spark.executor.defaultJavaOptions", executorOptions);
    settings.put(
        classPath.allJars() ? "spark.jars" : "spark.executor.extraClassPath",
        classPath.user().stream()
            .map(Path::toString)
            .collect(Collectors.joining(classPath.allJars() ? "," : File.pathSeparator)));
    settings.putAll(options.conf());
    return settings;
  }

  private Path logSettings() {
    return work.path().resolve(LOG_SETTINGS);
  }

  /**
   * The class path of this process in two parts.
   *
   * @param spark the jars of Spark and its dependencies, as in the {@code jars} folder of a Spark
   *     home
   * @param user the jars that a user adds: Weft, the examples and their libraries
   */
  record ClassPath(List<Path> spark, List<Path> user) {
    private static final List<String> USER_JARS =
        List.of("weft-", "tpch-", "tpcds-", "picocli-", "HdrHistogram-");

    ClassPath {
      spark = List.copyOf(spark);
      user = List.copyOf(user);
    }

    /** Returns the class path of this process. */
    static ClassPath current() {
      return split(
          Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
              .filter(entry -> !entry.isEmpty())
              .map(Path::of)
              .filter(Files::exists)
              .toList());
    }

    /** Separates the entries; class folders belong to the user. */
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

    /** Whether the user's part fits {@code spark.jars}, which does not accept folders. */
    boolean allJars() {
      return user.stream().allMatch(Files::isRegularFile);
    }
  }

  /**
   * Makes a Spark home out of jars: local-cluster and standalone workers start executors from a
   * home. It holds links to the jars and a RELEASE file. Without that file Spark's launcher
   * searches a source tree.
   */
  static final class SparkHome {
    /** The environment variable without which Spark's launcher searches a source tree. */
    static final String SCALA_VERSION_VARIABLE = "SPARK_SCALA_VERSION";

    /** The Scala version that Spark 4 is built with. */
    static final String SCALA_VERSION = "2.13";

    private SparkHome() {}

    /** Fills a folder, which must not contain jars, and returns it. */
    static Path assemble(Path folder, List<Path> jars) throws IOException {
      Path jarFolder = Files.createDirectories(folder.resolve("jars"));
      for (Path jar : jars) {
        // Two libraries may have a file of the same name. The hash of the path distinguishes them.
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
}
