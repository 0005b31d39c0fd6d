package io.weft.tests.support;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A standalone master and its workers, each a process of its own, as on several machines. */
public final class StandaloneCluster implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofSeconds(60);

  private final Workspace workspace;
  private final SparkHome home;
  private final List<ChildProcess> processes = new ArrayList<>();
  private final String url;

  private StandaloneCluster(Workspace workspace, SparkHome home) {
    this.workspace = workspace;
    this.home = home;
    ChildProcess master =
        start(
            "master",
            "org.apache.spark.deploy.master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--webui-port",
            "0");
    this.url = master.awaitLine("Starting Spark master at (spark://\\S+)", LIMIT).group(1);
  }

  /**
   * Starts a master and workers with one core and a gigabyte each, and waits until they know each
   * other.
   */
  public static StandaloneCluster start(Workspace workspace, SparkHome home, int workers) {
    StandaloneCluster cluster = new StandaloneCluster(workspace, home);
    try {
      for (int i = 0; i < workers; i++) {
        cluster.startWorker(i);
      }
      cluster.processes.stream()
          .skip(1)
          .forEach(worker -> worker.awaitLine("Successfully registered with master", LIMIT));
      return cluster;
    } catch (RuntimeException | Error e) {
      cluster.close();
      throw e;
    }
  }

  private void startWorker(int number) {
    Path folder = workspace.folder().resolve("worker-" + number);
    start(
        "worker " + number,
        "org.apache.spark.deploy.worker.Worker",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--webui-port",
        "0",
        "--cores",
        "1",
        "--memory",
        "1g",
        "--work-dir",
        folder.toString(),
        url);
  }

  private ChildProcess start(String name, String mainClass, String... arguments) {
    List<String> command =
        Jvm.command(
            home.classPath(), List.of("-Dspark.local.dir=" + workspace.localFolder()), mainClass);
    command.addAll(List.of(arguments));
    Map<String, String> environment =
        Map.of(
            "SPARK_HOME",
            home.folder().toString(),
            "SPARK_SCALA_VERSION",
            "2.13",
            "SPARK_LOCAL_IP",
            "127.0.0.1");
    ChildProcess process = ChildProcess.start(name, command, workspace.folder(), environment);
    processes.add(process);
    return process;
  }

  /** What applications name as their master. */
  public String url() {
    return url;
  }

  @Override
  public void close() {
    for (int i = processes.size() - 1; i >= 0; i--) {
      processes.get(i).close();
    }
  }
}
