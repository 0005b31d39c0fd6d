package io.weft.tests.support;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.ExecutorProbe;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import io.weft.tests.workload.Tables;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.ExecutorDecommissionInfo;
import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend;
import org.apache.spark.sql.SparkSession;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestWatcher;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * One session with Weft for a class of tests, with its driver in this JVM and executors in separate
 * processes, two by default. Use a static field with {@code @RegisterExtension}, ordered after the
 * {@link Workspace}. Shows the executors' logs when a test fails.
 */
public final class WeftCluster implements BeforeAllCallback, AfterAllCallback, TestWatcher {
  /** Executors of the cluster. */
  public static final int EXECUTORS = 2;

  private static final int SHOWN_LINES = 60;

  /** Metrics that are 0 if an executor holds no block. */
  private static final List<String> HELD =
      List.of("memoryUsed", "diskUsed", "retiredBytes", "openReaders");

  private final Workspace workspace;
  private final Map<String, String> settings = new LinkedHashMap<>();
  private List<Query> queries = Queries.compact();
  private int cores = 1;
  private int executors = EXECUTORS;
  private int megabytes = 1024;
  private String copiesKey = "";
  private HdfsProcess copiesIn;
  private List<String> hosts = List.of();
  private NetworkNamespaces network;
  private StandaloneCluster workers;
  private SparkSession session;
  private String applicationId;

  /** A cluster whose folders are those of the workspace. */
  public WeftCluster(Workspace workspace) {
    this.workspace = workspace;
  }

  /** Sets an option of the application, before it starts. */
  public WeftCluster set(String key, String value) {
    settings.put(key, value);
    return this;
  }

  /** Adds options to those of the executors' JVMs, before they start. */
  public WeftCluster executorOptions(String more) {
    String options = Jvm.executorOptions(SparkHome.shared());
    return set("spark.executor.extraJavaOptions", options + " " + more);
  }

  /** Sets the cores of each executor, before it starts; the default is one. */
  public WeftCluster cores(int each) {
    cores = each;
    return this;
  }

  /** Sets the executors and the heap of each, before they start; the default is two of 1 GiB. */
  public WeftCluster executors(int count, int heapMegabytes) {
    executors = count;
    megabytes = heapMegabytes;
    return set("spark.executor.memory", heapMegabytes + "m");
  }

  /**
   * Puts each executor on its own host, as Spark sees it, before it starts: a standalone cluster
   * whose workers have these addresses, of one core each.
   */
  public WeftCluster hosts(String first, String second) {
    hosts = List.of(first, second);
    return this;
  }

  /** Puts each executor on a host of a network, before it starts; the driver reaches both. */
  public WeftCluster network(NetworkNamespaces ofTwoHosts) {
    network = ofTwoHosts;
    return this;
  }

  /** Makes executors copy their map outputs to {@link #copies}. */
  public WeftCluster copying() {
    return copying("spark.weft.survive.path");
  }

  /** As {@link #copying()}, with the folder in this setting. */
  public WeftCluster copying(String key) {
    copiesKey = key;
    return this;
  }

  /** Makes executors copy their map outputs to the folder {@code /copies} of an HDFS. */
  public WeftCluster copyingTo(HdfsProcess hdfs) {
    copiesIn = hdfs;
    return copying();
  }

  /** The folder of copies of map outputs. */
  public Path copies() {
    return workspace.folder().resolve("copies");
  }

  /** Makes decommissioned executors send their blocks to the remaining ones. */
  public WeftCluster migrating() {
    set("spark.decommission.enabled", "true");
    set("spark.storage.decommission.enabled", "true");
    set("spark.storage.decommission.shuffleBlocks.enabled", "true");
    return set("spark.storage.decommission.replicationReattemptInterval", "1s");
  }

  /** Sets the queries that will be compared; the default is the compact ones. */
  public WeftCluster queries(List<Query> all) {
    this.queries = all;
    return this;
  }

  /** Starts the session; both executors run when this returns. */
  public void start() {
    Answers.prepare(queries);
    String master = master();
    if (!copiesKey.isEmpty()) {
      set(copiesKey, copiesIn == null ? copies().toUri() + "/" : copiesIn.uri() + "/copies");
    }
    session = Sessions.weft(workspace, master, settings);
    applicationId = session.sparkContext().applicationId();
    awaitExecutors();
    Tables.register(session, Answers.tables());
    Queries.configure(session, true);
  }

  private String master() {
    if (network != null) {
      hosts = List.of(network.address(1), network.address(2));
      workers = StandaloneCluster.start(workspace, SparkHome.shared(), network);
      set("spark.driver.host", network.address(0));
      set("spark.driver.bindAddress", network.address(0));
      return workers.url();
    }
    if (hosts.isEmpty()) {
      return "local-cluster[" + executors + "," + cores + "," + megabytes + "]";
    }
    workers = StandaloneCluster.start(workspace, SparkHome.shared(), hosts);
    return workers.url();
  }

  /** The session. */
  public SparkSession session() {
    return session;
  }

  /** The application. */
  public SparkContext context() {
    return session.sparkContext();
  }

  /** The executors' processes. */
  public List<ExecutorProcess> executors() {
    return ExecutorProcess.below(ProcessHandle.current());
  }

  /** The process of the executor with this id. */
  public ExecutorProcess executor(String id) {
    return executors().stream()
        .filter(executor -> executor.id().equals(id))
        .findFirst()
        .orElseThrow(() -> new AssertionError("no executor " + id + " among " + executors()));
  }

  /** The process of the executor on a host of the network, 1 or 2. */
  public ExecutorProcess executorOfHost(int host) {
    return CollectionConverters.asJavaCollection(context().statusStore().executorList(true))
        .stream()
        .filter(executor -> executor.hostPort().startsWith(network.address(host) + ":"))
        .map(executor -> executor(executor.id()))
        .findFirst()
        .orElseThrow(() -> new AssertionError("no executor on host " + host));
  }

  /**
   * Waits until the driver knows exactly the running executors, and each core of each executor has
   * run a task: an executor that the driver knows may still be starting. After that, the next job's
   * first stage has a task on each executor, if it has that many tasks.
   */
  public void awaitExecutors() {
    Awaitility.await("executors that run and that the driver knows")
        .atMost(Duration.ofMinutes(3))
        .untilAsserted(
            () -> {
              List<String> running = executors().stream().map(ExecutorProcess::id).toList();
              assertThat(running).hasSize(executors).containsExactlyInAnyOrderElementsOf(known());
            });
    assertThat(ExecutorProbe.statistics(context())).as("executors at work").hasSize(executors);
  }

  /** The ids of the executors that the driver knows. */
  public Collection<String> known() {
    return CollectionConverters.asJavaCollection(backend().getExecutorIds());
  }

  private CoarseGrainedSchedulerBackend backend() {
    return (CoarseGrainedSchedulerBackend) context().schedulerBackend();
  }

  /**
   * Decommissions executors, which send their blocks to the remaining ones; waits until they have
   * ended and others have replaced them.
   */
  public void decommission(List<ExecutorProcess> leaving) {
    startDecommission(leaving);
    leaving.forEach(executor -> executor.awaitEnd(Duration.ofMinutes(3)));
    awaitExecutors();
  }

  /** Tells executors to end after their tasks; does not wait. */
  public void startDecommission(List<ExecutorProcess> leaving) {
    for (ExecutorProcess executor : leaving) {
      ExecutorDecommissionInfo why = new ExecutorDecommissionInfo("the test", Option.empty());
      assertThat(backend().decommissionExecutor(executor.id(), why, false, false))
          .as("decommissioning of " + executor)
          .isTrue();
    }
  }

  /** One of Weft's metrics, summed over the executors. */
  public long sum(String figure) {
    return ExecutorProbe.sum(context(), figure);
  }

  /**
   * Waits until a metric has this sum: work that a job began may end, and be counted, after the
   * job.
   */
  public void awaitSum(String figure, long expected) {
    Awaitility.await(figure)
        .atMost(Duration.ofMinutes(3))
        .untilAsserted(() -> assertThat(sum(figure)).as(figure).isEqualTo(expected));
  }

  /**
   * Waits until the executors hold no more blocks. Spark forgets a shuffle when the driver has no
   * more references to it, so the garbage collector has to run.
   */
  public void awaitNothingUsed() {
    Awaitility.await("no block left in any executor")
        .atMost(Duration.ofMinutes(3))
        .pollDelay(Duration.ZERO)
        .pollInterval(Duration.ofMillis(200))
        .untilAsserted(
            () -> {
              System.gc();
              assertThat(used()).isEmpty();
            });
  }

  /** What each executor that holds blocks holds, by its id. */
  private Map<String, Map<String, Long>> used() {
    Map<String, Map<String, Long>> used = new TreeMap<>();
    ExecutorProbe.statistics(context())
        .forEach(
            (executor, figures) ->
                HELD.stream()
                    .filter(figure -> figures.get(figure) != 0)
                    .forEach(
                        figure ->
                            used.computeIfAbsent(executor, any -> new TreeMap<>())
                                .put(figure, figures.get(figure))));
    return used;
  }

  /** The folders that executors of any application have in the workspace. */
  public List<Path> executorFolders() {
    return Folders.tree(workspace.sharedMemory()).stream()
        .filter(file -> file.endsWith("alive"))
        .map(Path::getParent)
        .toList();
  }

  /** Runs a query and compares its rows with those of Spark's shuffle. */
  public void check(Query query) {
    Rows.assertSame(query.name(), Answers.of(query), query.run(session));
  }

  /** Ends the session. Its executors end before their workers are killed. */
  public void stop() {
    List<ExecutorProcess> ending = executors();
    if (session != null) {
      session.stop();
      session = null;
    }
    if (workers != null) {
      try {
        ending.forEach(executor -> executor.awaitEnd(Duration.ofMinutes(3)));
      } finally {
        workers.close();
        workers = null;
      }
    }
  }

  @Override
  public void beforeAll(ExtensionContext context) throws Exception {
    try {
      start();
    } catch (RuntimeException e) {
      throw new IllegalStateException(workspace.withExecutorErrors(e).getMessage(), e);
    }
  }

  @Override
  public void afterAll(ExtensionContext context) {
    stop();
  }

  @Override
  public void testFailed(ExtensionContext context, Throwable cause) {
    if (applicationId != null) {
      System.err.println(
          context.getDisplayName() + " failed; the ends of the executors' logs:\n" + logs());
    }
  }

  /** Waits until an executor's log contains a text; a separate process writes the log. */
  public void awaitLogged(String text) {
    Awaitility.await("an executor that logs: " + text)
        .atMost(Duration.ofMinutes(3))
        .until(
            () ->
                logFiles().stream()
                    .flatMap(file -> read(file).stream())
                    .anyMatch(line -> line.contains(text)));
  }

  /** The most lines with a text in any executor's log. */
  public long mostLogged(String text) {
    return logFiles().stream()
        .mapToLong(file -> read(file).stream().filter(line -> line.contains(text)).count())
        .max()
        .orElse(0);
  }

  /** The ends of the executors' logs. */
  private String logs() {
    StringBuilder out = new StringBuilder();
    for (Path file : logFiles()) {
      List<String> lines = read(file);
      out.append("  == ").append(file).append('\n');
      lines
          .subList(Math.max(0, lines.size() - SHOWN_LINES), lines.size())
          .forEach(line -> out.append("  | ").append(line).append('\n'));
    }
    return out.toString();
  }

  private List<Path> logFiles() {
    List<Path> works = new ArrayList<>(List.of(SparkHome.shared().folder().resolve("work")));
    for (int i = 0; i < hosts.size(); i++) {
      works.add(StandaloneCluster.workFolder(workspace, i));
    }
    return works.stream()
        .flatMap(work -> Folders.tree(work.resolve(applicationId)).stream())
        .filter(file -> file.endsWith("stderr"))
        .toList();
  }

  private static List<String> read(Path file) {
    try {
      return Files.readAllLines(file);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
