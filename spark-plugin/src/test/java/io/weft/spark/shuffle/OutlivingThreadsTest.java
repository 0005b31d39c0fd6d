package io.weft.spark.shuffle;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.spark.LocalSpark;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Threads other than the task's read a shuffle and outlive the task. They must never see freed
 * memory, which the build's tests overwrite ({@code weft.memory.poison}). Disks are encrypted and
 * memory is small, so most chunks are decrypted into memory that is freed with the reader.
 */
class OutlivingThreadsTest {
  private static final int ROUNDS = 500;
  private static final int ROWS_OF_A_ROUND = 300;

  /** What is wrong with rows that feeders read. */
  private static final Queue<String> WRONG = new ConcurrentLinkedQueue<>();

  private static final AtomicInteger RUNNING = new AtomicInteger();
  private static final AtomicInteger REFUSED = new AtomicInteger();

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    assertThat(Boolean.getBoolean("weft.memory.poison")).as("set by the build").isTrue();
    spark =
        LocalSpark.start(
            Map.of(
                "spark.io.encryption.enabled", "true",
                "spark.sql.adaptive.enabled", "false",
                "spark.weft.memory.size", "1m",
                "spark.weft.memory.segmentSize", "1m",
                "spark.weft.spill.privateMemory", "16m"));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @BeforeEach
  void reset() {
    WRONG.clear();
    REFUSED.set(0);
  }

  private static Dataset<Row> rows(String route, int partitions) {
    spark.session().conf().set("spark.weft.route", route);
    return spark
        .session()
        .range(0, (long) partitions * ROWS_OF_A_ROUND, 1, 4)
        .selectExpr("id", "concat('row-', id) s")
        .repartition(partitions, col("id"));
  }

  private static void assertNoReaderIsLeft() {
    await()
        .atMost(Duration.ofMinutes(1))
        .untilAsserted(() -> assertThat(LocalSpark.statistics().openReaders()).isZero());
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void aFeederThatOutlivesItsTaskSeesNoFreedMemory(String route) {
    Dataset<Row> rows = rows(route, ROUNDS);
    long tasks =
        rows.queryExecution().toRdd().toJavaRDD().mapPartitions(OutlivingThreadsTest::feed).count();
    assertThat(tasks).isEqualTo(ROUNDS);
    await().atMost(Duration.ofMinutes(1)).until(() -> RUNNING.get() == 0);
    assertThat(WRONG).isEmpty();
    assertThat(REFUSED).as("feeders that read after the end of their task").hasPositiveValue();
    assertNoReaderIsLeft();
  }

  /** Ends the task while its feeder reads. */
  private static Iterator<Integer> feed(Iterator<InternalRow> rows) throws InterruptedException {
    CountDownLatch some = new CountDownLatch(ROWS_OF_A_ROUND / 4);
    RUNNING.incrementAndGet();
    Thread feeder = new Thread(() -> read(rows, some), "feeder");
    feeder.setDaemon(true);
    feeder.start();
    assertThat(some.await(1, TimeUnit.MINUTES)).isTrue();
    return List.of(1).iterator();
  }

  private static void read(Iterator<InternalRow> rows, CountDownLatch some) {
    try {
      while (rows.hasNext()) {
        check(rows.next());
        some.countDown();
      }
    } catch (IllegalStateException e) {
      REFUSED.incrementAndGet();
      if (!e.getMessage().contains("the reader is closed")) {
        WRONG.add(e.toString());
      }
    } catch (Exception | Error e) {
      WRONG.add(e.toString());
    } finally {
      while (some.getCount() > 0) {
        some.countDown();
      }
      RUNNING.decrementAndGet();
    }
  }

  /** Reads the row several times, because the task may end at any time. */
  private static void check(InternalRow row) {
    for (int i = 0; i < 5; i++) {
      String expected = "row-" + row.getLong(0);
      String found = row.getUTF8String(1).toString();
      if (!found.equals(expected)) {
        WRONG.add(found + " instead of " + expected);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void pipeUnderALimit(String route) {
    for (int round = 0; round < 30; round++) {
      List<String> lines =
          rows(route, 4)
              .javaRDD()
              .map(row -> row.getLong(0) + " " + row.getString(1))
              .pipe("cat")
              .take(5);
      assertThat(lines).hasSize(5).allMatch(line -> line.matches("(\\d+) row-\\1"));
    }
    assertNoReaderIsLeft();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void transformUnderALimit(String route) {
    rows(route, 4).createOrReplaceTempView("moved");
    for (int round = 0; round < 30; round++) {
      List<Row> found =
          spark
              .session()
              .sql("SELECT TRANSFORM(id, s) USING 'cat' AS (id, s) FROM moved LIMIT 5")
              .collectAsList();
      assertThat(found)
          .hasSize(5)
          .allMatch(row -> row.getString(1).equals("row-" + row.getString(0)));
    }
    assertNoReaderIsLeft();
  }
}
