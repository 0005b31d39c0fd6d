package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.KillAtTask;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Executors are killed at random moments of random jobs, {@code -Dweft.adoption.rounds} times. The
 * rows stay right, and between two jobs no map task runs again. {@code -Dweft.adoption.seed}
 * repeats a run. The output has the times of the jobs, which are not tested.
 */
class AdoptionRoundsTest {
  private static final int ROUNDS = Integer.getInteger("weft.adoption.rounds", 5);
  private static final long SEED = Long.getLong("weft.adoption.seed", System.nanoTime());
  private static final int REPORTED_ROUNDS = 10;
  private static final List<String> ROUTES = List.of("rows", "columns", "streams");

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.adopt.enabled", "true")
          .set("spark.weft.rdd.streams", "true")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  private final Random random = new Random(SEED);
  private final Map<String, RoundTimes> times = new TreeMap<>();

  /** A job of a round. */
  private record Job(String route, int rows, int maps, int partitions, boolean adaptive) {
    String sql() {
      return "SELECT id, REPEAT(STRING(id), 9) AS s FROM RANGE(0, %d, 1, %d)".formatted(rows, maps);
    }

    JavaRDD<String> shuffled() {
      Queries.configure(CLUSTER.session(), adaptive);
      if (route.equals("streams")) {
        return CLUSTER.session().sql(sql()).javaRDD().map(RowText.FUNCTION).repartition(partitions);
      }
      CLUSTER.session().conf().set("spark.weft.route", route);
      return CLUSTER
          .session()
          .sql(sql())
          .repartition(partitions, col("id"))
          .javaRDD()
          .map(RowText.FUNCTION);
    }

    List<String> expected() {
      return CLUSTER.session().sql(sql()).collectAsList().stream()
          .map(RowText::of)
          .sorted()
          .toList();
    }
  }

  /** Many rounds take longer than other tests may. */
  @Test
  @Timeout(value = 55, unit = TimeUnit.MINUTES)
  void rowsStayRightAndNoOutputIsComputedTwice() {
    for (int round = 1; round <= ROUNDS; round++) {
      CLUSTER.awaitExecutors();
      Job job =
          new Job(
              ROUTES.get(random.nextInt(ROUTES.size())),
              1 + random.nextInt(20_000),
              2 + random.nextInt(10),
              2 + random.nextInt(10),
              random.nextBoolean());
      String name = "round " + round + " of seed " + SEED + ", " + job;
      System.out.println(LocalTime.now() + " " + name);
      switch (random.nextInt(3)) {
        case 0 -> betweenTwoJobs(name, job);
        case 1 -> duringAStage(name, job, 0, 1 + random.nextInt(job.maps()));
        default -> duringAStage(name, job, 1, 1 + random.nextInt(job.partitions()));
      }
      if (round % REPORTED_ROUNDS == 0 || round == ROUNDS) {
        times.forEach((kind, all) -> System.out.println(kind + ": " + all));
      }
    }
    CLUSTER.awaitExecutors();
    CLUSTER.awaitNothingUsed();
  }

  private void betweenTwoJobs(String name, Job job) {
    List<String> expected = job.expected();
    JavaRDD<String> rows = job.shuffled();
    Rows.assertSame(name, expected, sorted(rows));
    List<ExecutorProcess> executors = CLUSTER.executors();
    ExecutorProcess victim = executors.get(random.nextInt(executors.size()));
    long start = System.nanoTime();
    Rows.assertSame(name, expected, sorted(rows));
    long undisturbed = System.nanoTime() - start;
    try (TaskLog log = TaskLog.open(CLUSTER.context());
        Removal removal = Removal.listen(CLUSTER.context())) {
      long killed = System.nanoTime();
      victim.kill();
      MapOutputs.awaitElsewhere(victim, job.maps());
      Rows.assertSame(name, expected, sorted(rows));
      long disturbed = System.nanoTime() - killed;
      assertThat(log.mapTasks()).as(name).isZero();
      add("between two jobs", undisturbed, disturbed, removal.nanos() - killed, 0);
    }
  }

  private void add(String kind, long undisturbed, long disturbed, long notice, long repeated) {
    times
        .computeIfAbsent(kind, any -> new RoundTimes())
        .add(undisturbed, disturbed, notice, repeated);
  }

  /**
   * Spark itself repeats tasks of a stage that is not complete. It may also repeat map tasks if a
   * task looks for outputs before they are adopted.
   */
  private void duringAStage(String name, Job job, int stage, int task) {
    List<String> expected = job.expected();
    // The first run compiles the job.
    Rows.assertSame(name, expected, sorted(job.shuffled()));
    long start = System.nanoTime();
    Rows.assertSame(name, expected, sorted(job.shuffled()));
    long undisturbed = System.nanoTime() - start;
    try (KillAtTask killer = KillAtTask.arm(CLUSTER, stage, task);
        TaskLog log = TaskLog.open(CLUSTER.context());
        Removal removal = Removal.listen(CLUSTER.context())) {
      start = System.nanoTime();
      Rows.assertSame(name, expected, sorted(job.shuffled()));
      long disturbed = System.nanoTime() - start;
      assertThat(killer.victim()).as(name).isNotNull();
      long mapTasks = log.mapTasks();
      if (stage == 1 && log.fetchFailures().isEmpty()) {
        assertThat(mapTasks).as(name).isEqualTo(job.maps());
      }
      long notice = removal.nanos() - killer.nanos();
      String kind = stage == 0 ? "in the map stage" : "in the reduce stage";
      add(kind, undisturbed, disturbed, notice, mapTasks - job.maps());
    }
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }

  /** Hears when Spark has removed an executor. */
  private static final class Removal extends SparkListener implements AutoCloseable {
    private final SparkContext context;
    private final CompletableFuture<Long> removed = new CompletableFuture<>();

    private Removal(SparkContext context) {
      this.context = context;
    }

    static Removal listen(SparkContext context) {
      Removal removal = new Removal(context);
      context.addSparkListener(removal);
      return removal;
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
      removed.complete(System.nanoTime());
    }

    /** The time of the removal, as of {@code System.nanoTime}. */
    long nanos() {
      return removed.orTimeout(3, TimeUnit.MINUTES).join();
    }

    @Override
    public void close() {
      context.removeSparkListener(this);
    }
  }

  /** The times of the rounds of a kind. */
  private static final class RoundTimes {
    private final List<Double> undisturbed = new ArrayList<>();
    private final List<Double> disturbed = new ArrayList<>();
    private final List<Double> notice = new ArrayList<>();
    private final List<Double> ratio = new ArrayList<>();
    private long repeated;

    void add(long undisturbedNanos, long disturbedNanos, long noticeNanos, long repeatedTasks) {
      undisturbed.add(undisturbedNanos / 1e9);
      disturbed.add(disturbedNanos / 1e9);
      notice.add(noticeNanos / 1e9);
      ratio.add((disturbedNanos - noticeNanos) / (double) undisturbedNanos);
      repeated += repeatedTasks;
    }

    @Override
    public String toString() {
      return ("%d rounds, medians: undisturbed %.3f s, disturbed %.3f s, Spark's notice %.3f s, "
              + "(disturbed - notice) / undisturbed %.2f; map tasks repeated %d")
          .formatted(
              undisturbed.size(),
              median(undisturbed),
              median(disturbed),
              median(notice),
              median(ratio),
              repeated);
    }

    private static double median(List<Double> values) {
      return values.stream().sorted().toList().get(values.size() / 2);
    }
  }
}
