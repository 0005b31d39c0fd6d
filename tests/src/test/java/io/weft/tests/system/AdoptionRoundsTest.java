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
import io.weft.tests.workload.Pause;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.RowText;
import java.time.Duration;
import java.time.LocalTime;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Executors are killed at random moments of random jobs, {@code -Dweft.adoption.rounds} times. The
 * rows of the job stay right. The shuffles of earlier jobs, whose outputs may have been adopted
 * several times, are read again without a map task. {@code -Dweft.adoption.seed} repeats a run.
 *
 * <p>Most of a round's processor time is the start of an executor. So a third executor starts while
 * the next round runs on two, and the expected rows are computed without Spark.
 */
class AdoptionRoundsTest {
  private static final int ROUNDS = Integer.getInteger("weft.adoption.rounds", 5);
  private static final long SEED = Long.getLong("weft.adoption.seed", System.nanoTime());
  private static final int REPORTED_ROUNDS = 10;
  private static final int EXECUTORS = 3;

  /** Shuffles of earlier jobs that are kept. */
  private static final int SHUFFLES = 3;

  /** In the middle of an adoption, which mostly takes less than 50 ms after the death. */
  private static final int SECOND_DEATH_MILLIS = 60;

  /** How long tasks take at least in the stage in which an executor dies. */
  private static final int PAUSE_MILLIS = 60;

  /** So often an executor may die after the stage in which it was to die, in one round. */
  private static final int MAX_LATE = 20;

  private static final List<String> ROUTES = List.of("rows", "columns", "streams");

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .executors(EXECUTORS, 512)
          .queries(List.of())
          .set("spark.weft.adopt.enabled", "true")
          .set("spark.weft.rdd.streams", "true")
          .set("spark.weft.fetch.timeout", "20s")
          .set("spark.stage.maxConsecutiveAttempts", "10");

  private final Random random = new Random(SEED);
  private final Deque<Shuffle> shuffles = new ArrayDeque<>();
  private final Map<String, Counts> counts = new TreeMap<>();

  /** A job of a round. */
  private record Job(String route, int rows, int maps, int partitions, boolean adaptive) {
    /** Each map task that has rows calls the function first. */
    JavaRDD<String> shuffled(int pauseMillis) {
      Queries.configure(CLUSTER.session(), adaptive);
      CLUSTER.session().udf().register("pause", new Pause(pauseMillis), DataTypes.LongType);
      String sql =
          "SELECT pause(id) AS id, REPEAT(STRING(id), 9) AS s FROM RANGE(0, %d, 1, %d)"
              .formatted(rows, maps);
      if (route.equals("streams")) {
        return CLUSTER.session().sql(sql).javaRDD().map(RowText.FUNCTION).repartition(partitions);
      }
      CLUSTER.session().conf().set("spark.weft.route", route);
      return CLUSTER
          .session()
          .sql(sql)
          .repartition(partitions, col("id"))
          .javaRDD()
          .map(RowText.FUNCTION);
    }

    List<String> expected() {
      return LongStream.range(0, rows)
          .mapToObj(id -> RowText.of(RowFactory.create(id, Long.toString(id).repeat(9))))
          .sorted()
          .toList();
    }
  }

  /**
   * The shuffle of a job that has ended.
   *
   * @param number Spark's id of it
   */
  private record Shuffle(int number, Job job, JavaRDD<String> rows) {}

  /** Many rounds take longer than other tests may. */
  @Test
  @Timeout(value = 55, unit = TimeUnit.MINUTES)
  void rowsStayRightAndNoOutputIsComputedTwice() {
    for (int round = 1; round <= ROUNDS; round++) {
      Job job = job();
      String name = "round " + round + " of seed " + SEED + ", " + job;
      System.out.println(LocalTime.now() + " " + name);
      switch (random.nextInt(6)) {
        case 0, 1 -> betweenTwoJobs(name, job);
        case 2, 3 -> duringAStage("in the reduce stage", name, job, 1);
        case 4 -> duringAStage("in the map stage", name, job, 0);
        default -> twoDeathsBetweenTwoJobs(name, job);
      }
      if (round % REPORTED_ROUNDS == 0 || round == ROUNDS) {
        System.out.println(LocalTime.now() + " after " + round + " rounds: " + counts);
      }
    }
    shuffles.clear();
    CLUSTER.awaitExecutors();
    CLUSTER.awaitNothingUsed();
  }

  private Job job() {
    return new Job(
        ROUTES.get(random.nextInt(ROUTES.size())),
        1 + random.nextInt(5_000),
        2 + random.nextInt(8),
        2 + random.nextInt(8),
        random.nextBoolean());
  }

  private void betweenTwoJobs(String name, Job job) {
    awaitKnown(2);
    JavaRDD<String> rows = job.shuffled(0);
    Rows.assertSame(name, job.expected(), sorted(rows));
    add(job, rows);
    ExecutorProcess victim = victim();
    victim.kill();
    readAgain(name, List.of(victim));
    counts("between two jobs").add(0, 0);
  }

  /** The second executor may die while it adopts the outputs of the first. */
  private void twoDeathsBetweenTwoJobs(String name, Job job) {
    awaitKnown(EXECUTORS);
    JavaRDD<String> rows = job.shuffled(0);
    Rows.assertSame(name, job.expected(), sorted(rows));
    add(job, rows);
    ExecutorProcess first = victim();
    first.kill();
    long pause = TimeUnit.MILLISECONDS.toNanos(random.nextInt(SECOND_DEATH_MILLIS));
    long start = System.nanoTime();
    while (System.nanoTime() - start < pause) {
      Thread.onSpinWait();
    }
    ExecutorProcess second = victim();
    second.kill();
    readAgain(name, List.of(first, second));
    counts("two deaths between two jobs").add(0, 0);
  }

  /** A death after the stage is not one in it, so the round is repeated with another job. */
  private void duringAStage(String kind, String name, Job first, int stage) {
    Job job = first;
    int late = 0;
    while (!diesInStage(kind, name + ", late " + late, job, stage)) {
      late++;
      assertThat(late).as(name + ": deaths after the stage").isLessThan(MAX_LATE);
      job = job();
    }
  }

  /**
   * Spark itself repeats tasks of a map stage that is not complete. It may also repeat map tasks if
   * a task looks for outputs before they are adopted.
   */
  private boolean diesInStage(String kind, String name, Job job, int stage) {
    awaitKnown(2);
    // Not the last task, with which the stage ends. Adaptive execution may have joined partitions.
    int tasks = stage == 0 ? job.maps() : job.adaptive() ? 2 : job.partitions();
    int task = 1 + random.nextInt(tasks - 1);
    boolean inStage;
    JavaRDD<String> rows;
    ExecutorProcess victim;
    try (KillAtTask killer = KillAtTask.arm(CLUSTER, stage, task);
        TaskLog log = TaskLog.open(CLUSTER.context())) {
      // Adaptive execution runs the map stage already here.
      rows = job.shuffled(stage == 0 ? PAUSE_MILLIS : 0);
      JavaRDD<String> read = stage == 0 ? rows : Pause.before(rows, PAUSE_MILLIS);
      Rows.assertSame(name, job.expected(), sorted(read));
      victim = killer.victim();
      assertThat(victim).as(name).isNotNull();
      inStage = killer.diedInStage();
      long mapTasks = log.mapTasks();
      int failures = log.fetchFailures().size();
      if (stage == 1 && failures == 0) {
        assertThat(mapTasks).as(name).isEqualTo(job.maps());
      }
      counts(inStage ? kind : kind + ", but too late").add(mapTasks - job.maps(), failures);
    }
    add(job, rows);
    readAgain(name, List.of(victim));
    return inStage;
  }

  private void add(Job job, JavaRDD<String> rows) {
    shuffles.addLast(new Shuffle(MapOutputs.lastShuffle(), job, rows));
    if (shuffles.size() > SHUFFLES) {
      shuffles.removeFirst();
    }
  }

  /** Reads all shuffles once their outputs are elsewhere. */
  private void readAgain(String name, List<ExecutorProcess> victims) {
    for (ExecutorProcess victim : victims) {
      shuffles.forEach(
          shuffle -> MapOutputs.awaitElsewhere(shuffle.number(), victim, shuffle.job().maps()));
    }
    try (TaskLog log = TaskLog.open(CLUSTER.context())) {
      for (Shuffle shuffle : shuffles) {
        String read = name + ": shuffle " + shuffle.number() + " again, " + shuffle.job();
        Rows.assertSame(read, shuffle.job().expected(), sorted(shuffle.rows()));
      }
      assertThat(log.mapTasks()).as(name + ": map tasks").isZero();
      assertThat(log.fetchFailures()).as(name + ": fetch failures").isEmpty();
    }
    counts("shuffles read again").add(shuffles.size());
  }

  /** An executor that the driver knows, so not one that has been killed. */
  private ExecutorProcess victim() {
    List<ExecutorProcess> executors =
        CLUSTER.executors().stream().filter(known -> CLUSTER.known().contains(known.id())).toList();
    return executors.get(random.nextInt(executors.size()));
  }

  private static void awaitKnown(int executors) {
    Awaitility.await(executors + " executors that run and that the driver knows")
        .atMost(Duration.ofMinutes(3))
        .pollDelay(Duration.ZERO)
        .pollInterval(Duration.ofMillis(20))
        .until(() -> known() >= executors);
  }

  private static long known() {
    return CLUSTER.executors().stream()
        .filter(running -> CLUSTER.known().contains(running.id()))
        .count();
  }

  private static List<String> sorted(JavaRDD<String> rows) {
    return rows.collect().stream().sorted().toList();
  }

  private Counts counts(String kind) {
    return counts.computeIfAbsent(kind, any -> new Counts());
  }

  /** What happened in the rounds of a kind. */
  private static final class Counts {
    private long rounds;
    private long repeated;
    private long failures;

    void add(long repeatedTasks, long fetchFailures) {
      rounds++;
      repeated += repeatedTasks;
      failures += fetchFailures;
    }

    void add(long read) {
      rounds += read;
    }

    @Override
    public String toString() {
      return "%d (map tasks repeated %d, fetch failures %d)".formatted(rounds, repeated, failures);
    }
  }
}
