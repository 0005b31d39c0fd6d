package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.spark.LocalSpark;
import io.weft.spark.runtime.WeftExecutor;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Shuffles with encrypted disks while another user has all shared and private memory. */
class FullPrivateMemoryTest {
  private static final int MEGABYTE = 1 << 20;

  private static LocalSpark spark;

  private final ExecutorService threads = Executors.newSingleThreadExecutor();
  private final List<Extent> kept = new ArrayList<>();
  private SharedArena arena;

  @BeforeAll
  static void start() {
    spark =
        LocalSpark.start(
            Map.of(
                "spark.io.encryption.enabled", "true",
                "spark.weft.fetch.timeout", "5s",
                "spark.weft.memory.size", Integer.toString(MEGABYTE),
                "spark.weft.memory.segmentSize", Integer.toString(MEGABYTE),
                "spark.weft.spill.privateMemory", Integer.toString(4 * MEGABYTE)));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  /** Takes all shared memory and all retained private memory, like spilled GPU memory. */
  @BeforeEach
  void takeAllRetainedMemory() {
    arena = WeftExecutor.exchange().arena();
    assertThatThrownBy(
            () -> {
              while (true) {
                kept.add(arena.allocate(MEGABYTE / 8, Use.RETAINED));
              }
            })
        .isInstanceOf(ArenaFullException.class);
    assertThat(kept).extracting(Extent::kind).contains(MemoryKind.PRIVATE);
  }

  @AfterEach
  void freeRetainedMemory() {
    threads.shutdownNow();
    kept.forEach(arena::free);
    spark.session().sql("SELECT 1").collect();
  }

  private static List<Row> query(SparkSession session) {
    String rows =
        "SELECT /*+ REPARTITION(20, k) */ id, k, XXHASH64(s) AS h FROM (SELECT id, id % 5000 AS k,"
            + " REPEAT(id, 20) AS s FROM RANGE(0, 20000, 1, 3))";
    return session
        .sql("SELECT COUNT(*), SUM(id), SUM(k), BIT_XOR(h) FROM (%s)".formatted(rows))
        .collectAsList();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void tasksUseTransientMemoryWhileRetainedMemoryIsFull(String route) {
    List<Row> expected = spark.withSortShuffle(FullPrivateMemoryTest::query);
    spark.session().conf().set("spark.weft.route", route);
    long spilled = LocalSpark.count(ExchangeCounter.BYTES_SPILLED);
    for (int i = 0; i < 3; i++) {
      assertThat(spark.withWeft(FullPrivateMemoryTest::query)).isEqualTo(expected);
    }
    assertThat(LocalSpark.count(ExchangeCounter.BYTES_SPILLED)).isGreaterThan(spilled);
  }

  /** Another task has all transient private memory and then frees it. */
  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void tasksWaitForMemoryThatOthersFree(String route) throws Exception {
    List<Row> expected = spark.withSortShuffle(FullPrivateMemoryTest::query);
    spark.session().conf().set("spark.weft.route", route);
    try (MapOutputWriter sibling = takeAllForMoments()) {
      Future<List<Row>> rows = threads.submit(() -> query(spark.session()));
      Awaitility.await("a task that waits")
          .pollInterval(Duration.ofMillis(10))
          .atMost(Duration.ofMinutes(1))
          .until(() -> rows.isDone() || isATaskWaiting());
      assertThat(rows).isNotDone();
      sibling.close();
      assertThat(rows.get(1, TimeUnit.MINUTES)).isEqualTo(expected);
    }
  }

  private static MapOutputWriter takeAllForMoments() throws IOException {
    MapOutputWriter sibling = WeftExecutor.exchange().newMapOutput(new BlockKey(999, 0), 1);
    for (int megabyte = 0; megabyte < 2; megabyte++) {
      assertThat(sibling.allocate(MEGABYTE).kind()).isEqualTo(MemoryKind.PRIVATE);
    }
    return sibling;
  }

  private static boolean isATaskWaiting() {
    return Thread.getAllStackTraces().entrySet().stream()
        .filter(entry -> entry.getKey().getName().startsWith("Executor task launch"))
        .anyMatch(entry -> isInMemory(entry.getValue()));
  }

  private static boolean isInMemory(StackTraceElement[] stack) {
    return Arrays.stream(stack)
        .anyMatch(frame -> frame.getClassName().equals("io.weft.memory.FreedMemory"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void memoryThatIsNeverFreedIsAnErrorThatNamesTheSetting(String route) throws IOException {
    spark.session().conf().set("spark.weft.route", route);
    try (MapOutputWriter sibling = takeAllForMoments()) {
      assertThatThrownBy(() -> query(spark.session()))
          .hasStackTraceContaining("within 5.0 s. ")
          .hasStackTraceContaining("transient private memory: 2.0 MiB in use")
          .hasStackTraceContaining("spark.weft.spill.privateMemory");
    }
  }
}
