package io.weft.tests.support;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.function.UnaryOperator;

/** A standalone master and its workers, each a separate process, as on several machines. */
public final class StandaloneCluster implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofMinutes(3);
  private static final String LOCALHOST = "127.0.0.1";

  private final Workspace workspace;
  private final SparkHome home;
  private final List<ChildProcess> processes = new ArrayList<>();
  private final String url;

  private StandaloneCluster(Workspace workspace, SparkHome home, String masterHost) {
    this.workspace = workspace;
    this.home = home;
    ChildProcess master =
        start(
            "master",
            masterHost,
            UnaryOperator.identity(),
            "org.apache.spark.deploy.master.Master",
            "--host",
            masterHost,
            "--port",
            "0",
            "--webui-port",
            "0");
    this.url = master.awaitLine("Starting Spark master at (spark://\\S+)", LIMIT).group(1);
  }

  /**
   * Starts a master and workers with one core and a gigabyte each, and waits until the workers are
   * registered.
   */
  public static StandaloneCluster start(Workspace workspace, SparkHome home, int workers) {
    return start(workspace, home, Collections.nCopies(workers, LOCALHOST));
  }

  /**
   * Like above, with a worker for each address of the loopback network. Spark treats different
   * addresses as different hosts, and then also does its work between hosts, such as speculation.
   */
  public static StandaloneCluster start(Workspace workspace, SparkHome home, List<String> hosts) {
    return start(
        new StandaloneCluster(workspace, home, LOCALHOST),
        hosts,
        number -> UnaryOperator.identity());
  }

  /** Like above, with a worker on each of the two hosts of a network. */
  static StandaloneCluster start(Workspace workspace, SparkHome home, NetworkNamespaces network) {
    return start(
        new StandaloneCluster(workspace, home, network.address(0)),
        List.of(network.address(1), network.address(2)),
        number -> command -> network.enter(1 + number, command));
  }

  private static StandaloneCluster start(
      StandaloneCluster cluster,
      List<String> hosts,
      IntFunction<UnaryOperator<List<String>>> entering) {
    try {
      for (int i = 0; i < hosts.size(); i++) {
        cluster.startWorker(i, hosts.get(i), entering.apply(i));
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

  private void startWorker(int number, String host, UnaryOperator<List<String>> enter) {
    start(
        "worker " + number,
        host,
        enter,
        "org.apache.spark.deploy.worker.Worker",
        "--host",
        host,
        "--port",
        "0",
        "--webui-port",
        "0",
        "--cores",
        "1",
        "--memory",
        "1g",
        "--work-dir",
        workFolder(workspace, number).toString(),
        url);
  }

  /** The folder in which a worker keeps the folders of its executors. */
  static Path workFolder(Workspace workspace, int worker) {
    return workspace.folder().resolve("worker-" + worker);
  }

  private ChildProcess start(
      String name,
      String host,
      UnaryOperator<List<String>> enter,
      String mainClass,
      String... arguments) {
    List<String> command =
        Jvm.command(
            home,
            home.classPath(),
            List.of("-Dspark.local.dir=" + workspace.localFolder()),
            mainClass);
    command.addAll(List.of(arguments));
    Map<String, String> environment =
        Map.of(
            "SPARK_HOME",
            home.folder().toString(),
            "SPARK_SCALA_VERSION",
            "2.13",
            "SPARK_LOCAL_IP",
            host);
    ChildProcess process =
        ChildProcess.start(name, enter.apply(command), workspace.folder(), environment);
    processes.add(process);
    return process;
  }

  /** The master URL for applications. */
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
