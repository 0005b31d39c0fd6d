package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.spark.TaskTotals;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.spark.shuffle.JavaStream.CountedOutput;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import scala.Some;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/** Streams of Java's serialization, Spark's default. */
class JavaStreamsTest extends StreamsContract {
  JavaStreamsTest() {
    super(Map.of());
  }

  @Test
  void anObjectThatCannotBeSerializedIsNamed() {
    Throwable failure =
        catchThrowable(
            () ->
                new JavaSparkContext(spark().session().sparkContext())
                    .parallelize(List.of(1, 2))
                    .mapToPair(i -> new Tuple2<>(i, new Object[] {new Object()}))
                    .groupByKey(3)
                    .count());
    assertThat(failure)
        .hasStackTraceContaining("not serializable result: java.lang.Object")
        .hasStackTraceContaining("Serialization stack");
  }

  /** A class that only Java's serialization writes. */
  private record Own(int number, byte[] bytes) implements Serializable {
    @Override
    public String toString() {
      return "own " + number + " " + bytes.length;
    }
  }

  /** Values of known classes, of others, and longer than a chunk, in turn and in long runs. */
  private static Object value(int number, String mixture) {
    boolean known =
        switch (mixture) {
          case "in turn" -> number % 2 == 0;
          case "in runs" -> number / 500 % 2 == 0;
          case "few others" -> number % 397 != 5;
          case "known" -> true;
          default -> false;
        };
    if (!known) {
      return new Own(number, new byte[number % 100]);
    }
    return switch (number % 5) {
      case 0 -> RowFactory.create((long) number, "row " + number, null);
      case 1 -> "text " + "ж".repeat(number % 311 == 1 ? 90_000 : number % 7);
      case 2 -> new Some<>(number);
      case 3 -> new Tuple2<>(number, (double) number);
      default -> null;
    };
  }

  /** Few partitions have a stream each; records of many come from a sorter. */
  @ParameterizedTest
  @CsvSource({
    "known, 3",
    "known, 300",
    "others, 3",
    "in turn, 3",
    "in turn, 300",
    "in runs, 3",
    "few others, 2",
    "few others, 300"
  })
  void knownValuesAndOthers(String mixture, int partitions) throws Exception {
    JavaPairRDD<Integer, Object> pairs =
        new JavaSparkContext(spark().session().sparkContext())
            .parallelize(IntStream.range(0, 4000).boxed().toList(), 2)
            .mapToPair(i -> new Tuple2<>(i, value(i, mixture)))
            .partitionBy(hash(partitions));
    List<String> texts = byPartition(pairs.map(e -> e._1() + " " + e._2()));
    List<String> expected =
        new ArrayList<>(
            IntStream.range(0, 4000)
                .mapToObj(i -> i % partitions + ": " + i + " " + value(i, mixture))
                .toList());
    expected.sort(null);
    assertThat(texts).isEqualTo(expected);
    assertThat(headers(pairs, partitions)).containsAll(expectedHeaders(mixture));
  }

  private static Set<Byte> expectedHeaders(String mixture) {
    return switch (mixture) {
      case "known" -> Set.of(StreamWriter.VALUES);
      case "others" -> Set.of(StreamWriter.LAST);
      default -> Set.of(StreamWriter.VALUES, StreamWriter.LAST);
    };
  }

  /** The headers of a map output's chunks. */
  private static Set<Byte> headers(JavaPairRDD<?, ?> pairs, int partitions) throws Exception {
    Set<Byte> headers = new HashSet<>();
    BlockRequest request =
        new BlockRequest("driver", key(pairs.rdd(), 0), 0, 0, partitions, partitions);
    try (ChunkReader chunks = WeftExecutor.exchange().read(List.of(request), FetchListener.NONE)) {
      while (chunks.next()) {
        headers.add(Platform.getByte(null, chunks.address()));
      }
    }
    return headers;
  }

  /** Rows of all kinds of columns. */
  @Test
  void rowsAreThoseOfSparksShuffle() {
    Function<SparkSession, List<String>> program =
        session ->
            byPartition(
                session
                    .range(3000)
                    .selectExpr(
                        "id",
                        "cast(id as string) s",
                        "array(id, 1L) a",
                        "map('k', id) m",
                        "struct(id, null n) t",
                        "timestamp_millis(id) u",
                        "id / 3.0 d",
                        "cast(id as decimal(30, 3)) e",
                        "date '2000-01-01' v",
                        "unhex('ff') b")
                    .javaRDD()
                    .mapToPair(row -> new Tuple2<>(row.getLong(0), row))
                    .partitionBy(hash(4))
                    .map(
                        e ->
                            e._2().json()
                                + e._2().schema()
                                + e._2().get(2).getClass()
                                + e._2().get(4).getClass()));
    assertThat(program.apply(spark().session())).isEqualTo(spark().withSortShuffle(program::apply));
  }

  @Test
  void oneArrayInARecordStaysOne() {
    List<Boolean> same =
        new JavaSparkContext(spark().session().sparkContext())
            .parallelize(List.of(1, 2), 1)
            .mapToPair(
                i -> {
                  int[] array = {i};
                  return new Tuple2<>(i, new Tuple2<>(array, array));
                })
            .partitionBy(hash(2))
            .map(e -> e._2()._1() == e._2()._2() && e._2()._1()[0] == e._1())
            .collect();
    assertThat(same).containsExactly(true, true);
  }

  /** As in Spark's shuffle, it is one object for many records, in memory too. */
  @Test
  void aListOfAllRecordsIsWrittenSeldom() throws Exception {
    List<Long> numbers = new ArrayList<>(LongStream.range(0, 1000).boxed().toList());
    TaskTotals totals = new TaskTotals();
    spark().drainListeners();
    spark().session().sparkContext().addSparkListener(totals);
    List<Integer> lists =
        new JavaSparkContext(spark().session().sparkContext())
            .parallelize(IntStream.range(0, 2000).boxed().toList(), 1)
            .mapToPair(i -> new Tuple2<>(i, new Tuple2<>(i, numbers)))
            .partitionBy(hash(1))
            .mapPartitions(entries -> List.of(differentLists(entries)).iterator())
            .collect();
    spark().drainListeners();
    spark().session().sparkContext().removeSparkListener(totals);
    assertThat(totals.bytesWritten()).isLessThan(1 << 20);
    assertThat(lists.get(0)).isLessThan(100);
  }

  private static int differentLists(Iterator<Tuple2<Integer, Tuple2<Integer, List<Long>>>> all) {
    Set<Object> different = Collections.newSetFromMap(new IdentityHashMap<>());
    all.forEachRemaining(entry -> different.add(entry._2()._2()));
    return different.size();
  }

  @Test
  void changedValuesAreAFetchFailure() throws Exception {
    JavaPairRDD<String, Integer> shuffled = pairs(spark().session(), 300).partitionBy(hash(1));
    List<String> expected = byPartition(shuffled.map(e -> e._1() + " " + e._2()));
    BlockRequest request = new BlockRequest("driver", key(shuffled.rdd(), 1), 0, 0, 1, 1);
    try (ChunkReader chunks = WeftExecutor.exchange().read(List.of(request), FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      assertThat(Platform.getByte(null, chunks.address())).isEqualTo(StreamWriter.VALUES);
      Platform.putByte(null, chunks.address() + 1, (byte) 127);
    }
    assertThat(byPartition(shuffled.map(e -> e._1() + " " + e._2()))).isEqualTo(expected);
  }

  /** Spark's stream forgets shared objects after 100 records; this one after bytes too. */
  @ParameterizedTest
  @CsvSource({"1, 20", "1000, 300", "65536, 3000"})
  void sparksSerializerReadsTheStream(long resetBytes, int records) throws IOException {
    List<Tuple2<Object, Object>> written = new ArrayList<>();
    String shared = "shared ".repeat(20);
    Bytes bytes = new Bytes();
    try (JavaStream stream = new JavaStream(bytes, resetBytes, new SparkConf(false))) {
      for (int i = 0; i < records; i++) {
        Tuple2<Object, Object> record = new Tuple2<>(i, i % 3 == 0 ? null : shared + i % 5);
        written.add(record);
        assertThat(stream.writeKey(record._1(), ClassTag.Any())).isSameAs(stream);
        assertThat(stream.writeValue(record._2(), ClassTag.Any())).isSameAs(stream);
      }
    }
    var read =
        new JavaSerializer(new SparkConf(false))
            .newInstance()
            .deserializeStream(new ByteArrayInputStream(bytes.out.toByteArray()))
            .asKeyValueIterator();
    assertThat(CollectionConverters.asJava(read.toSeq())).isEqualTo(written);
  }

  @Test
  void aResetThatTheUserSetIsKept() {
    SparkConf conf = new SparkConf(false);
    assertThat(JavaStream.replaces(new JavaSerializer(conf), conf)).isTrue();
    conf.set("spark.serializer.objectStreamReset", "7");
    assertThat(JavaStream.replaces(new JavaSerializer(conf), conf)).isFalse();
  }

  private static final class Bytes extends CountedOutput {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    @Override
    public void write(int oneByte) {
      out.write(oneByte);
    }

    @Override
    long count() {
      return out.size();
    }
  }
}
