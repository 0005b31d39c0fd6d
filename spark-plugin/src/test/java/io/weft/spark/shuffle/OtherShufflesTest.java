package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.LocalSpark;
import java.lang.reflect.Constructor;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.shuffle.ShuffleHandle;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import scala.Tuple2;

/** Spark carries shuffles that the settings leave to it. */
class OtherShufflesTest {
  private static LocalSpark spark;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of());
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  @Test
  void aggregatedSortedAndPlainRddShuffles() {
    long published = LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED);
    JavaPairRDD<Integer, Integer> pairs = pairs();
    Map<Integer, Integer> sums = pairs.reduceByKey(Integer::sum).collectAsMap();
    assertThat(sums)
        .hasSize(10)
        .containsEntry(3, IntStream.range(0, 100).map(i -> i * 10 + 3).sum());
    List<Integer> sorted = pairs.mapToPair(Tuple2::swap).sortByKey().keys().collect();
    assertThat(sorted).isSorted().hasSize(1000);
    assertThat(pairs.partitionBy(new HashPartitioner(7)).values().collect()).hasSize(1000);
    assertThat(LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED)).isEqualTo(published);
    assertThat(fallbacks()).containsEntry("spark.weft.rdd.streams is false", 3L);
  }

  @Test
  void aSessionThatTurnedWeftOff() {
    long published = LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED);
    long rows =
        spark.withSortShuffle(
            session -> session.range(100).toDF().repartition(3).toJavaRDD().count());
    assertThat(rows).isEqualTo(100);
    assertThat(LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED)).isEqualTo(published);
    assertThat(fallbacks()).containsKey("spark.weft.enabled is false in its session");
  }

  /** As with {@code spark.executor.userClassPathFirst}, where a session has its own loader. */
  @Test
  void classesThatAreLoadedTwiceAreRefused() throws Exception {
    WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
    URL[] classes = {WeftShuffleManager.class.getProtectionDomain().getCodeSource().getLocation()};
    try (URLClassLoader second = new ChildFirst(classes)) {
      Class<?> twice = second.loadClass(WeftShuffleManager.WeftShuffleHandle.class.getName());
      Constructor<?> constructor = twice.getDeclaredConstructors()[0];
      constructor.setAccessible(true);
      ShuffleHandle handle = (ShuffleHandle) constructor.newInstance(1, null, Optional.empty());
      assertThatThrownBy(() -> manager.getWriter(handle, 1, null, null))
          .hasMessageContaining("spark.executor.userClassPathFirst");
      assertThatThrownBy(() -> manager.getReader(handle, 0, 1, 0, 1, null, null))
          .hasMessageContaining("loaded twice");
    }
  }

  /** Loads Weft's classes itself. */
  private static final class ChildFirst extends URLClassLoader {
    ChildFirst(URL[] classes) {
      super(classes, WeftShuffleManager.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      return name.startsWith("io.weft.spark.shuffle.")
          ? findClass(name)
          : super.loadClass(name, resolve);
    }
  }

  private static JavaPairRDD<Integer, Integer> pairs() {
    JavaSparkContext context = new JavaSparkContext(spark.session().sparkContext());
    return context
        .parallelize(IntStream.range(0, 1000).boxed().toList(), 4)
        .mapToPair(i -> new Tuple2<>(i % 10, i));
  }

  private static Map<String, Long> fallbacks() {
    return ((WeftShuffleManager) SparkEnv.get().shuffleManager()).fallbacks().counts();
  }
}
