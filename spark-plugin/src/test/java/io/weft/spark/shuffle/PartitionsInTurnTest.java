package io.weft.spark.shuffle;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.spark.LocalSpark;
import io.weft.spark.Tensors;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.spark.shuffle.RecordsReader.PackedRows;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContext$;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Product2;

/**
 * A task that reads many partitions in turn, as after {@code coalesce(1)}, holds the memory of one
 * partition. Spark encrypts its disks and memory is small, so chunks are decrypted into memory of
 * which a task may have only a few chunks.
 */
class PartitionsInTurnTest {
  private static final int MEGABYTE = 1 << 20;
  private static final AtomicInteger MOST_READERS = new AtomicInteger();

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    Map<String, String> settings = new HashMap<>(Tensors.SETTINGS);
    settings.put("spark.io.encryption.enabled", "true");
    settings.put("spark.weft.transport", "tcp");
    settings.put("spark.weft.fetch.timeout", "10s");
    settings.put("spark.weft.memory.size", Integer.toString(MEGABYTE));
    settings.put("spark.weft.memory.segmentSize", Integer.toString(MEGABYTE));
    settings.put("spark.weft.spill.privateMemory", Integer.toString(4 * MEGABYTE));
    spark = LocalSpark.start(settings);
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void aTaskHoldsTheMemoryOfOnePartition(String route) {
    spark.session().conf().set("spark.weft.route", route);
    Dataset<Row> moved =
        spark
            .session()
            .range(0, 300_000, 1, 8)
            .selectExpr("id", "repeat(string(id), 20) s")
            .repartition(200)
            .coalesce(1);
    Row sums = moved.selectExpr("count(*)", "sum(id)", "bit_xor(xxhash64(s))").head();
    Row expected =
        spark
            .session()
            .range(0, 300_000, 1, 8)
            .selectExpr("count(*)", "sum(id)", "bit_xor(xxhash64(repeat(string(id), 20)))")
            .head();
    assertThat(sums).isEqualTo(expected);
  }

  @ParameterizedTest
  @ValueSource(strings = {"rows", "columns"})
  void aTaskHasOneOpenReader(String route) {
    spark.session().conf().set("spark.weft.route", route);
    MOST_READERS.set(0);
    Dataset<Row> moved =
        spark.session().range(0, 20_000, 1, 2).toDF().repartition(2000, col("id")).coalesce(1);
    assertThat(moved.javaRDD().mapPartitions(watched()).count()).isEqualTo(20_000);
    assertThat(MOST_READERS).hasValue(1);
  }

  @Test
  void aTaskOfTheKryoRouteHasOneOpenReader() {
    MOST_READERS.set(0);
    List<Integer> numbers = IntStream.range(0, 5000).boxed().toList();
    long count =
        new JavaSparkContext(spark.session().sparkContext())
            .parallelize(numbers, 2)
            .repartition(500)
            .coalesce(1)
            .mapPartitions(watched())
            .count();
    assertThat(count).isEqualTo(5000);
    assertThat(MOST_READERS).hasValue(1);
  }

  /** Passes the records on and notes how many readers are open while there are more. */
  private static <T> FlatMapFunction<Iterator<T>, T> watched() {
    return records ->
        new Iterator<>() {
          @Override
          public boolean hasNext() {
            return records.hasNext();
          }

          @Override
          public T next() {
            T record = records.next();
            MOST_READERS.accumulateAndGet(
                LocalSpark.statistics().openReaders(), (most, now) -> Math.max(most, now));
            return record;
          }
        };
  }

  /** A row stays readable after the end, as in Spark, though its chunk is freed. */
  @Test
  void theLastRowOutlivesItsChunk() throws IOException {
    ReadRow last = readOneRow(TaskContext$.MODULE$.empty());
    assertThat(last.row().getLong(0)).isEqualTo(42);
    assertThat(last.row().getBaseObject()).isInstanceOf(byte[].class);
  }

  /** 2,000 readers of 10,000 blocks each would fill the heap before the end of their task. */
  @Test
  void theTaskKeepsNoBlocksOfAnEndedPartition() throws IOException {
    TaskContext task = TaskContext$.MODULE$.empty();
    ReadRow read = readOneRow(task);
    await()
        .atMost(Duration.ofMinutes(1))
        .until(
            () -> {
              System.gc();
              return read.blocks().get() == null;
            });
    assertThat(task.isCompleted()).isFalse();
  }

  private record ReadRow(UnsafeRow row, WeakReference<List<BlockRequest>> blocks) {}

  private static ReadRow readOneRow(TaskContext task) throws IOException {
    ExecutorExchange exchange = WeftExecutor.exchange();
    BlockKey key = new BlockKey(1_000_000, task.taskAttemptId());
    writeOneRow(exchange, key);
    try {
      ShuffleBlocks blocks =
          new ShuffleBlocks(List.of(new BlockRequest("driver", key, 0, 0, 1, 24)), Map.of());
      scala.collection.Iterator<Product2<Integer, UnsafeRow>> rows =
          new RecordsReader<>(
                  blocks,
                  new PackedRows<Integer, UnsafeRow>(1),
                  task,
                  task.taskMetrics().createTempShuffleReadMetrics(),
                  exchange,
                  FetchListener.NONE)
              .read();
      UnsafeRow row = rows.next()._2();
      assertThat(rows.hasNext()).isFalse();
      assertThat(LocalSpark.statistics().openReaders()).isZero();
      return new ReadRow(row, new WeakReference<>(blocks.requests()));
    } finally {
      exchange.removeShuffle(key.shuffleId());
    }
  }

  /** A row of one long: its size, the bits of its nulls, its value. */
  private static void writeOneRow(ExecutorExchange exchange, BlockKey key) throws IOException {
    try (MapOutputWriter output = exchange.newMapOutput(key, 1)) {
      Extent extent = output.allocate(24);
      Memory.putLong(extent.address(), 16);
      Memory.putLong(extent.address() + 8, 0);
      Memory.putLong(extent.address() + 16, 42);
      output.commit(0, extent, 24, 1);
      output.publish();
    }
  }
}
