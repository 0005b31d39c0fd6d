package io.weft.examples.side;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.launcher.JavaModuleOptions;

/**
 * Starts sides that share a class path. Every side is set up alike: only what its options say
 * differs. Used by one thread.
 */
public final class SideLauncher {
  private static final String LOG_SETTINGS = "log4j2.properties";

  private final WorkFolder work;
  private final ClassPath classPath;

  private SideLauncher(WorkFolder work, ClassPath classPath) {
    this.work = work;
    this.classPath = classPath;
  }

  /** Prepares to start sides with this process's class path, in a work folder. */
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
   * Starts a side; {@link SideProcess#awaitReady} says when it can be used. The caller closes it.
   */
  public SideProcess start(SideOptions options) throws IOException {
    Path log = work.folder("logs").resolve(options.name() + ".log");
    // A home each: two clusters that start in the same second name their applications alike, and
    // workers keep the applications' logs in folders of that name in their home.
    Path home = SparkHome.assemble(work.folder("spark-" + options.name()), classPath.spark());
    ProcessBuilder builder = new ProcessBuilder(command(options));
    builder.redirectError(log.toFile()).directory(work.path().toFile());
    environment(builder.environment(), home);
    SideLogs logs = new SideLogs(log, home.resolve("work"));
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
    // The class path is too long to be pleasant in a list of processes.
    environment.put(
        "CLASSPATH",
        Stream.concat(classPath.user().stream(), classPath.spark().stream())
            .map(Path::toString)
            .collect(Collectors.joining(File.pathSeparator)));
    environment.put("SPARK_HOME", home.toString());
    environment.put(SparkHome.SCALA_VERSION_VARIABLE, SparkHome.SCALA_VERSION);
    // Nothing here is for other machines, whatever this one's name resolves to.
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
}
