package io.weft.tests.support;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;

/** An application, submitted by spark-submit in a separate JVM. */
public final class Submission {
  private final Workspace workspace;
  private final SparkHome home;
  private final String application;
  private final Map<String, String> settings = new LinkedHashMap<>();
  private final Map<String, String> environment = new LinkedHashMap<>();
  private final List<Path> jars = new ArrayList<>();
  private final List<String> jvmOptions = new ArrayList<>();
  private final List<String> arguments = new ArrayList<>();
  private String driverClassPath = "";
  private UnaryOperator<List<String>> wrapper = UnaryOperator.identity();

  /**
   * Creates a submission of a class of the package {@code application} on a home, with the folders
   * of a workspace, still without Weft.
   */
  public Submission(Workspace workspace, SparkHome home, Class<?> application) {
    this(workspace, home, application.getName());
  }

  /**
   * As above, of one of Spark's own programs.
   *
   * @param application its class
   */
  public Submission(Workspace workspace, SparkHome home, String application) {
    this.workspace = workspace;
    this.home = home;
    this.application = application;
    settings.put("spark.ui.enabled", "false");
    settings.put("spark.driver.host", "127.0.0.1");
    settings.put("spark.driver.bindAddress", "127.0.0.1");
    settings.put("spark.executor.extraJavaOptions", Jvm.executorOptions(home));
    settings.putAll(workspace.settings());
    environment.put("SPARK_HOME", home.folder().toString());
    environment.put("SPARK_SCALA_VERSION", "2.13");
    environment.put("SPARK_LOCAL_IP", "127.0.0.1");
  }

  /** Enables Weft by its single setting. */
  public Submission plugin() {
    return set("spark.plugins", Sessions.PLUGIN);
  }

  /** Sets the master. */
  public Submission master(String url) {
    return set("spark.master", url);
  }

  /** Adds one {@code --conf}. */
  public Submission set(String key, String value) {
    settings.put(key, value);
    return this;
  }

  /** Removes a setting. */
  public Submission unset(String key) {
    settings.remove(key);
    return this;
  }

  /** Adds a jar to {@code --jars}. */
  public Submission jar(Path jar) {
    jars.add(jar);
    return this;
  }

  /** Adds a jar to {@code --driver-class-path}: only the driver has it. */
  public Submission driverClassPath(Path jar) {
    driverClassPath = jar.toString();
    return this;
  }

  /** Sets an environment variable of the driver. */
  public Submission environment(String name, String value) {
    environment.put(name, value);
    return this;
  }

  /** Adds an option of the driver's JVM. */
  public Submission jvmOption(String option) {
    jvmOptions.add(option);
    return this;
  }

  /** Adds an argument of the application. */
  public Submission argument(Object value) {
    arguments.add(value.toString());
    return this;
  }

  /**
   * Sets a function that converts the command into the one that starts, for another user or another
   * file system.
   */
  public Submission wrap(UnaryOperator<List<String>> wrapper) {
    this.wrapper = wrapper;
    return this;
  }

  /** Starts the application. */
  public ChildProcess start() {
    String name = application.substring(application.lastIndexOf('.') + 1);
    return ChildProcess.start(name, wrapper.apply(command()), workspace.folder(), environment);
  }

  private List<String> command() {
    String classPath = home.classPath() + (driverClassPath.isEmpty() ? "" : ":" + driverClassPath);
    List<String> command =
        Jvm.command(home, classPath, jvmOptions, "org.apache.spark.deploy.SparkSubmit");
    settings.forEach((key, value) -> command.addAll(List.of("--conf", key + "=" + value)));
    if (!jars.isEmpty()) {
      String list = jars.stream().map(Path::toString).collect(Collectors.joining(","));
      command.addAll(List.of("--jars", list));
    }
    if (!driverClassPath.isEmpty()) {
      command.addAll(List.of("--driver-class-path", driverClassPath));
    }
    command.addAll(List.of("--class", application, ApplicationJar.get().toString()));
    command.addAll(arguments);
    return command;
  }
}
