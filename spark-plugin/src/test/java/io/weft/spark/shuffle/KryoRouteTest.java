package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.LocalSpark;
import io.weft.spark.TaskTotals;
import io.weft.spark.Tensors;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.storage.StorageLevel;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/** The same RDDs through Weft's Kryo route and through Spark's sort shuffle. */
class KryoRouteTest {
  private static final int COUNT = 500;

  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    Map<String, String> settings = new HashMap<>(Tensors.SETTINGS);
    settings.put("spark.weft.rdd.streams", "true");
    settings.put("spark.weft.memory.segmentSize", "1m");
    spark = LocalSpark.start(settings);
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  /** Fails unless an RDD has the same records in the same partitions with Weft and with Spark. */
  private static void assertSame(Function<SparkSession, JavaRDD<String>> rdd) {
    List<String> sparks = spark.withSortShuffle(session -> byPartition(rdd.apply(session)));
    List<String> ours = spark.withWeft(session -> byPartition(rdd.apply(session)));
    assertThat(ours).isEqualTo(sparks).isNotEmpty();
  }

  private static List<String> byPartition(JavaRDD<String> rdd) {
    List<String> records = new ArrayList<>();
    List<List<String>> partitions = rdd.glom().collect();
    for (int i = 0; i < partitions.size(); i++) {
      for (String text : partitions.get(i)) {
        records.add(i + ": " + text);
      }
    }
    records.sort(null);
    return records;
  }

  private static JavaSparkContext context(SparkSession session) {
    return new JavaSparkContext(session.sparkContext());
  }

  private static JavaRDD<Integer> numbers(SparkSession session) {
    return context(session).parallelize(IntStream.range(0, COUNT).boxed().toList(), 4);
  }

  private static JavaPairRDD<String, Tensor> tensors(SparkSession session) {
    return numbers(session).mapToPair(i -> new Tuple2<>("key " + i % 90, Tensors.varied(i)));
  }

  @Test
  void partitionBy() {
    assertSame(
        session ->
            tensors(session)
                .partitionBy(new HashPartitioner(7))
                .map(entry -> entry._1() + " " + Tensors.text(entry._2())));
  }

  @Test
  void repartitionAndCoalesce() {
    assertSame(session -> tensors(session).values().repartition(5).map(Tensors::text));
    assertSame(session -> tensors(session).values().coalesce(2, true).map(Tensors::text));
  }

  @Test
  void joinsMoveTensorsToo() {
    assertSame(
        session ->
            tensors(session)
                .join(numbers(session).mapToPair(i -> new Tuple2<>("key " + i, i)), 3)
                .map(entry -> entry._1() + Tensors.text(entry._2()._1()) + entry._2()._2()));
  }

  @Test
  void otherRecordsTakeTheSameRoute() {
    assertSame(
        session ->
            numbers(session)
                .mapToPair(i -> new Tuple2<>(i % 5 == 0 ? null : "key " + i, mixture(i)))
                .partitionBy(new HashPartitioner(6))
                .map(entry -> entry._1() + " " + entry._2()));
  }

  private static TreeMap<String, Object> mixture(int i) {
    if (i % 7 == 0) {
      return null;
    }
    TreeMap<String, Object> map = new TreeMap<>();
    map.put("name", "x".repeat(i * 40));
    map.put("list", new ArrayList<>(Arrays.asList(i, 2.5, null)));
    return map;
  }

  @Test
  void tensorsLargerThanAChunkAndThanASegment() {
    List<Integer> seeds =
        spark.withWeft(
            session ->
                context(session)
                    .parallelize(List.of(1, 2, 3), 2)
                    .map(i -> Tensors.counting(i, i, 300_000))
                    .repartition(2)
                    .map(KryoRouteTest::largeSeed)
                    .collect());
    assertThat(seeds).containsExactlyInAnyOrder(1, 2, 3);
  }

  private static int largeSeed(Tensor tensor) {
    int seed = (int) tensor.type().dimension(0);
    Tensors.assertCounting(tensor, seed, seed, 300_000);
    return seed;
  }

  /** None of them may refer to the shuffle's memory. */
  @Test
  void collectedAndCachedTensorsOutliveTheShuffle() {
    JavaRDD<Tensor> shuffled =
        spark.withWeft(
            session -> {
              JavaRDD<Tensor> rdd =
                  numbers(session)
                      .map(i -> Tensors.counting(i, 1 + i % 50))
                      .repartition(3)
                      .persist(StorageLevel.MEMORY_ONLY());
              assertThat(rdd.count()).isEqualTo(COUNT);
              return rdd;
            });
    List<Tensor> collected = shuffled.collect();
    int shuffleId = shuffleId(shuffled);
    SparkEnv.get().blockManager().master().removeShuffle(shuffleId, true);
    long before = LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED);
    spark.withWeft(session -> numbers(session).map(i -> "y".repeat(3000)).repartition(3).count());
    assertCounted(collected);
    assertCounted(shuffled.collect());
    assertThat(LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED)).isEqualTo(before + 4);
    shuffled.unpersist();
  }

  private static void assertCounted(List<Tensor> tensors) {
    List<Integer> seeds = new ArrayList<>();
    for (Tensor tensor : tensors) {
      int seed = (int) tensor.byteBuffer().asFloatBuffer().get(0);
      Tensors.assertCounting(tensor, seed, 1 + seed % 50);
      seeds.add(seed);
    }
    seeds.sort(null);
    assertThat(seeds).isEqualTo(IntStream.range(0, COUNT).boxed().toList());
  }

  private static int shuffleId(JavaRDD<?> rdd) {
    return shuffleOf(rdd.rdd());
  }

  /** The only shuffle among the ancestors. */
  private static int shuffleOf(RDD<?> rdd) {
    var dependency = rdd.dependencies().head();
    return dependency instanceof ShuffleDependency<?, ?, ?> shuffle
        ? shuffle.shuffleId()
        : shuffleOf(dependency.rdd());
  }

  @Test
  void aLostMapOutputIsComputedAgain() {
    JavaRDD<Tensor> shuffled =
        numbers(spark.session()).map(i -> Tensors.counting(i, 1 + i % 50)).repartition(3);
    assertCounted(shuffled.collect());
    int shuffleId = shuffleId(shuffled);
    MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    long mapId = tracker.shuffleStatuses().apply(shuffleId).mapStatuses()[1].mapId();
    WeftExecutor.exchange().removeMapOutput(new BlockKey(shuffleId, mapId));
    long before = LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED);
    assertCounted(shuffled.collect());
    assertThat(LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED)).isGreaterThan(before);
  }

  @Test
  void aFailedMapTaskLeaksNothing() {
    JavaRDD<Tensor> shuffled =
        numbers(spark.session())
            .map(
                i -> {
                  Tensor tensor = Tensors.counting(i, 100);
                  if (i == COUNT - 1) {
                    tensor.close();
                  }
                  return tensor;
                })
            .repartition(3);
    long before = LocalSpark.statistics().arena().usedBytes();
    assertThat(catchThrowable(shuffled::count))
        .hasStackTraceContaining("float32[100] has been closed");
    SparkEnv.get().blockManager().master().removeShuffle(shuffleId(shuffled), true);
    await()
        .atMost(Duration.ofMinutes(1))
        .until(() -> LocalSpark.statistics().arena().usedBytes() <= before);
  }

  /** They take streams of the same serializer, with tensors in them. */
  @Test
  void aggregatingAndSortingShuffles() {
    assertSame(
        session ->
            tensors(session)
                .groupByKey(3)
                .flatMapValues(Iterable::iterator)
                .map(entry -> entry._1() + " " + Tensors.text(entry._2())));
    List<String> sorted = spark.withWeft(s -> tensors(s).sortByKey().keys().collect());
    assertThat(sorted).isSorted().hasSize(COUNT);
  }

  @Test
  void sparkCountsRecordsAndBytes() throws Exception {
    TaskTotals totals = new TaskTotals();
    // Otherwise it may get the last tasks of the test before.
    spark.drainListeners();
    spark.session().sparkContext().addSparkListener(totals);
    numbers(spark.session()).map(i -> Tensors.counting(i, 100)).repartition(3).count();
    spark.drainListeners();
    spark.session().sparkContext().removeSparkListener(totals);
    assertThat(totals.recordsWritten()).isEqualTo(COUNT);
    assertThat(totals.recordsRead()).isEqualTo(COUNT);
    assertThat(totals.bytesWritten()).isBetween(COUNT * 408L, COUNT * 432L);
    assertThat(totals.localBytes()).isEqualTo(totals.bytesWritten());
  }
}
