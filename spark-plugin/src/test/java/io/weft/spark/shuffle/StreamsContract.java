package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.LocalSpark;
import io.weft.spark.TaskTotals;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.runtime.WeftExecutor;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.Aggregator;
import org.apache.spark.HashPartitioner;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.ShuffledRDD;
import org.apache.spark.serializer.DeserializationStream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Option;
import scala.Tuple2;
import scala.math.Ordering;

/**
 * The same RDDs as streams of a serializer through Weft, and through Spark's sort shuffle. A
 * subclass sets the serializer. Sorters spill often, and chunks are short.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class StreamsContract {
  private static final int MEGABYTE = 1 << 20;

  /** More partitions than have a stream each. */
  private static final int MANY = 300;

  /** A task for each of thousands of partitions would cost more than all else in these tests. */
  private static final int MOST_TASKS = 20;

  private final Map<String, String> settings;
  private LocalSpark spark;

  /** Further settings of the application. */
  StreamsContract(Map<String, String> further) {
    settings = new HashMap<>(further);
    settings.put("spark.weft.rdd.streams", "true");
    settings.put("spark.weft.memory.segmentSize", Integer.toString(MEGABYTE));
    settings.put("spark.shuffle.spill.numElementsForceSpillThreshold", "100");
  }

  @BeforeAll
  void start() {
    spark = LocalSpark.start(settings);
  }

  @AfterAll
  void stop() {
    spark.close();
  }

  LocalSpark spark() {
    return spark;
  }

  /** An RDD of texts, computed from a session and a number of records. */
  interface Program extends BiFunction<SparkSession, Integer, JavaRDD<String>> {}

  private static Named<Program> named(String name, Program program) {
    return Named.of(name, program);
  }

  /** Programs whose records have the same partitions in each run. */
  static Stream<Named<Program>> programs() {
    return Stream.of(
        named("repartition", (spark, n) -> numbers(spark, n).repartition(5).map(i -> "" + i)),
        named("partitionBy", (spark, n) -> texts(pairs(spark, n).partitionBy(hash(7)))),
        named("many partitions", (spark, n) -> texts(pairs(spark, n).partitionBy(hash(2000)))),
        named("groupByKey", (spark, n) -> groups(pairs(spark, n).groupByKey(5))),
        named("groupByKey, many", (spark, n) -> groups(pairs(spark, n).groupByKey(MANY))),
        named("reduceByKey", (spark, n) -> texts(sums(spark, n, 5))),
        named("reduceByKey, many", (spark, n) -> texts(sums(spark, n, MANY))),
        named(
            "aggregateByKey",
            (spark, n) ->
                texts(pairs(spark, n).aggregateByKey(0, 4, (a, v) -> a + 1, Integer::sum))),
        named("distinct", (spark, n) -> numbers(spark, n).map(i -> "" + i % 50).distinct(3)),
        named(
            "cogroup",
            (spark, n) ->
                pairs(spark, n)
                    .cogroup(sums(spark, n, 2), 3)
                    .map(e -> e._1() + sorted(e._2()._1()) + sorted(e._2()._2()))),
        named("join", (spark, n) -> texts(sums(spark, n, 3).join(pairs(spark, n).distinct(), 4))),
        named("combined and sorted", (spark, n) -> sortedSums(spark, n, true)),
        named("combined later and sorted", (spark, n) -> sortedSums(spark, n, false)),
        named(
            "sorted in partitions",
            (spark, n) ->
                texts(
                    pairs(spark, n)
                        .filter(e -> e._1() != null)
                        .repartitionAndSortWithinPartitions(hash(3)))));
  }

  static Stream<Arguments> programsAndSizes() {
    return programs()
        .flatMap(program -> Stream.of(0, 1, 3000).map(size -> Arguments.of(program, size)));
  }

  @ParameterizedTest(name = "{0}, {1} records")
  @MethodSource("programsAndSizes")
  void recordsAreThoseOfSparksShuffle(Program program, int records) {
    List<String> sparks =
        spark.withSortShuffle(session -> byPartition(program.apply(session, records)));
    long before = LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED);
    assertThat(byPartition(program.apply(spark.session(), records))).isEqualTo(sparks);
    long published = LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED) - before;
    // Some programs drop the only record before the shuffle.
    assertThat(records == 1 || published > 0 == records > 0).as("through Weft").isTrue();
  }

  /** Its partitions are sampled, so only the order of all records is the same in each run. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 3000})
  void sortByKeySorts(int records) {
    List<Integer> sorted =
        numbers(spark.session(), records)
            .mapToPair(i -> new Tuple2<>((i * 7919) % 10_007, i))
            .sortByKey(true, 6)
            .values()
            .collect();
    List<Integer> expected = new ArrayList<>(IntStream.range(0, records).boxed().toList());
    expected.sort(Comparator.comparing(i -> (i * 7919) % 10_007));
    assertThat(sorted).isEqualTo(expected);
  }

  /**
   * Below and above the sizes of chunks (64 KiB) and segments (1 MiB), so that streams span them.
   */
  @ParameterizedTest
  @ValueSource(ints = {2, MANY})
  void recordsOfAllSizes(int partitions) {
    List<Integer> sizes =
        List.of(0, 1, 100, 4000, 60_000, 65_535, 65_536, 70_000, 300_000, 3 * MEGABYTE, 9, 0);
    List<String> arrived =
        spark.withWeft(
            session ->
                context(session)
                    .parallelize(sizes, 3)
                    .mapToPair(size -> new Tuple2<>(size, bytes(size)))
                    .partitionBy(hash(partitions))
                    .map(e -> e._1() + " " + Arrays.equals(e._2(), bytes(e._1())))
                    .coalesce(MOST_TASKS)
                    .collect());
    assertThat(arrived)
        .containsExactlyInAnyOrderElementsOf(sizes.stream().map(size -> size + " true").toList());
  }

  private static byte[] bytes(int size) {
    byte[] bytes = new byte[size];
    for (int i = 0; i < size; i++) {
      bytes[i] = (byte) (i * 31 + (i >> 8) + size);
    }
    return bytes;
  }

  /** A reader copies all chunks of a stream but the last one. */
  @ParameterizedTest
  @ValueSource(ints = {65_000, 140_000, 350_000})
  void longStreamsEnd(int bytesOfRecord) throws Exception {
    JavaPairRDD<Integer, byte[]> shuffled =
        context(spark.session())
            .parallelize(IntStream.range(0, 60).boxed().toList(), 1)
            .mapToPair(i -> new Tuple2<>(i, bytes(bytesOfRecord)))
            .partitionBy(hash(1));
    assertThat(shuffled.count()).isEqualTo(60);
    BlockRequest request = new BlockRequest("driver", key(shuffled.rdd(), 0), 0, 0, 1, 1);
    long joined = 0;
    long most = 0;
    try (ChunkReader chunks = WeftExecutor.exchange().read(List.of(request), FetchListener.NONE)) {
      while (chunks.next()) {
        boolean more = Platform.getByte(null, chunks.address()) == StreamWriter.MORE;
        joined = more ? joined + chunks.length() : 0;
        most = Math.max(most, joined);
      }
    }
    assertThat(most).isLessThan(2 * MEGABYTE + bytesOfRecord);
  }

  @Test
  void sparkCountsRecordsBytesAndSpills() throws Exception {
    TaskTotals totals = new TaskTotals();
    // Otherwise it may get the last tasks of the test before.
    spark.drainListeners();
    spark.session().sparkContext().addSparkListener(totals);
    assertThat(pairs(spark.session(), 3000).partitionBy(hash(4)).count()).isEqualTo(3000);
    spark.drainListeners();
    spark.session().sparkContext().removeSparkListener(totals);
    assertThat(totals.recordsWritten()).isEqualTo(3000);
    assertThat(totals.recordsRead()).isEqualTo(3000);
    assertThat(totals.bytesWritten()).isBetween(3000L * 5, 3000L * 100);
    assertThat(totals.localBytes()).isEqualTo(totals.bytesWritten());
  }

  @Test
  void aLostMapOutputIsComputedAgain() {
    JavaPairRDD<String, Integer> shuffled = sums(spark.session(), 3000, 5);
    List<String> expected = byPartition(texts(shuffled));
    WeftExecutor.exchange().removeMapOutput(key(shuffled.rdd(), 1));
    long before = LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED);
    assertThat(byPartition(texts(shuffled))).isEqualTo(expected);
    assertThat(LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED)).isGreaterThan(before);
  }

  @Test
  void anUnknownHeaderIsAFetchFailure() throws Exception {
    JavaPairRDD<String, Integer> shuffled = pairs(spark.session(), 3000).partitionBy(hash(5));
    List<String> expected = byPartition(texts(shuffled));
    BlockRequest request = new BlockRequest("driver", key(shuffled.rdd(), 2), 0, 0, 5, 1);
    try (ChunkReader chunks = WeftExecutor.exchange().read(List.of(request), FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      Platform.putByte(null, chunks.address(), (byte) 2);
    }
    assertThat(byPartition(texts(shuffled))).isEqualTo(expected);
  }

  @Test
  void aFailedMapTaskLeaksNothing() {
    JavaRDD<Integer> failing =
        numbers(spark.session(), 3000)
            .map(
                i -> {
                  if (i == 2999) {
                    throw new IllegalStateException("the last record");
                  }
                  return i;
                })
            .repartition(3);
    long before = LocalSpark.statistics().arena().usedBytes();
    assertThat(catchThrowable(failing::count)).hasStackTraceContaining("the last record");
    int shuffleId = shuffleOf(failing.rdd()).shuffleId();
    // After a fetch failure of another test, Spark's master may not know the block manager.
    assertThat(SparkEnv.get().shuffleManager().unregisterShuffle(shuffleId)).isTrue();
    await()
        .atMost(Duration.ofMinutes(1))
        .untilAsserted(
            () ->
                assertThat(LocalSpark.statistics().arena().usedBytes())
                    .isLessThanOrEqualTo(before));
  }

  /** Blocks in Spark's form, for programs that fetch them without Weft's reader. */
  @Test
  void blocksAreRewrittenForSparksFetchIterator() throws Exception {
    JavaPairRDD<String, Integer> shuffled = pairs(spark.session(), 3000).partitionBy(hash(2));
    List<String> expected = byPartition(texts(shuffled));
    ShuffleDependency<?, ?, ?> dependency = shuffleOf(shuffled.rdd());
    List<String> rewritten = new ArrayList<>();
    for (int map = 0; map < 4; map++) {
      for (int partition = 0; partition < 2; partition++) {
        long mapId = key(shuffled.rdd(), map).mapId();
        ShuffleBlockId id = new ShuffleBlockId(dependency.shuffleId(), mapId, partition);
        read(id, dependency, partition, rewritten);
      }
    }
    rewritten.sort(null);
    assertThat(rewritten).isEqualTo(expected);
  }

  private static void read(
      ShuffleBlockId id, ShuffleDependency<?, ?, ?> dependency, int partition, List<String> to)
      throws Exception {
    SparkEnv env = SparkEnv.get();
    ManagedBuffer block =
        env.shuffleManager().shuffleBlockResolver().getBlockData(id, Option.empty());
    try (InputStream in = env.serializerManager().wrapStream(id, block.createInputStream());
        DeserializationStream stream =
            dependency.serializer().newInstance().deserializeStream(in)) {
      var records = stream.asKeyValueIterator();
      while (records.hasNext()) {
        Tuple2<Object, Object> record = records.next();
        to.add(partition + ": " + record._1() + " " + record._2());
      }
    }
    block.release();
  }

  static BlockKey key(RDD<?> rdd, int map) {
    int shuffleId = shuffleOf(rdd).shuffleId();
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    return new BlockKey(
        shuffleId, tracker.shuffleStatuses().apply(shuffleId).mapStatuses()[map].mapId());
  }

  /** The nearest shuffle among the ancestors. */
  private static ShuffleDependency<?, ?, ?> shuffleOf(RDD<?> rdd) {
    var dependency = rdd.dependencies().head();
    return dependency instanceof ShuffleDependency<?, ?, ?> shuffle
        ? shuffle
        : shuffleOf(dependency.rdd());
  }

  /** The records after the numbers of their partitions, of which a task reads several in turn. */
  static List<String> byPartition(JavaRDD<String> rdd) {
    List<String> records =
        new ArrayList<>(
            rdd.mapPartitionsWithIndex(StreamsContract::numbered, true)
                .coalesce(MOST_TASKS)
                .collect());
    records.sort(null);
    return records;
  }

  private static Iterator<String> numbered(int partition, Iterator<String> texts) {
    List<String> numbered = new ArrayList<>();
    texts.forEachRemaining(text -> numbered.add(partition + ": " + text));
    return numbered.iterator();
  }

  private static JavaSparkContext context(SparkSession session) {
    return new JavaSparkContext(session.sparkContext());
  }

  private static JavaRDD<Integer> numbers(SparkSession session, int records) {
    return context(session).parallelize(IntStream.range(0, records).boxed().toList(), 4);
  }

  /** Pairs with null keys and null values among them. */
  static JavaPairRDD<String, Integer> pairs(SparkSession session, int records) {
    return numbers(session, records)
        .mapToPair(
            i -> new Tuple2<>(i % 37 == 5 ? null : "key " + i % 700, i % 41 == 0 ? null : i));
  }

  private static JavaPairRDD<String, Integer> sums(SparkSession session, int records, int parts) {
    return pairs(session, records)
        .mapValues(i -> i == null ? 0 : i)
        .reduceByKey(hash(parts), Integer::sum);
  }

  private static JavaRDD<String> sortedSums(SparkSession session, int records, boolean early) {
    RDD<Tuple2<String, Integer>> pairs =
        pairs(session, records).filter(e -> e._1() != null && e._2() != null).rdd();
    ShuffledRDD<String, Integer, Integer> shuffled =
        new ShuffledRDD<>(
            pairs,
            hash(4),
            ScalaInterop.tag(String.class),
            ScalaInterop.tag(Integer.class),
            ScalaInterop.tag(Integer.class));
    return JavaPairRDD.fromRDD(
            shuffled
                .setAggregator(Sum.aggregator())
                .setMapSideCombine(early)
                .setKeyOrdering(Ordering.comparatorToOrdering(Comparator.<String>naturalOrder())),
            ScalaInterop.<String>tag(String.class),
            ScalaInterop.<Integer>tag(Integer.class))
        .mapPartitions(
            entries -> {
              List<String> inOrder = new ArrayList<>();
              entries.forEachRemaining(e -> inOrder.add(inOrder.size() + " " + e));
              return inOrder.iterator();
            });
  }

  /** Adds integers. */
  private static final class Sum extends scala.runtime.AbstractFunction2<Integer, Integer, Integer>
      implements java.io.Serializable {
    private static final long serialVersionUID = 1L;

    static Aggregator<String, Integer, Integer> aggregator() {
      return new Aggregator<>(new Same(), new Sum(), new Sum());
    }

    @Override
    public Integer apply(Integer one, Integer other) {
      return one + other;
    }
  }

  /** Returns its argument. */
  private static final class Same extends scala.runtime.AbstractFunction1<Integer, Integer>
      implements java.io.Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public Integer apply(Integer value) {
      return value;
    }
  }

  private static JavaRDD<String> texts(JavaPairRDD<String, ?> pairs) {
    return pairs.map(entry -> entry._1() + " " + entry._2());
  }

  private static JavaRDD<String> groups(JavaPairRDD<String, Iterable<Integer>> groups) {
    return groups.map(entry -> entry._1() + sorted(entry._2()));
  }

  private static List<String> sorted(Iterable<?> values) {
    List<String> sorted = new ArrayList<>();
    values.forEach(value -> sorted.add(String.valueOf(value)));
    sorted.sort(null);
    return sorted;
  }

  static HashPartitioner hash(int partitions) {
    return new HashPartitioner(partitions);
  }
}
