package io.weft.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.config.Setting.InvalidSettingException;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.SparkSessionExtensions;
import org.junit.jupiter.api.Test;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** The effects of the plugin's setting on an application. */
class WeftPluginTest {
  @Test
  void oneSettingIsEnough() {
    try (LocalSpark spark = LocalSpark.start(Map.of())) {
      SparkConf conf = SparkEnv.get().conf();
      assertThat(SparkEnv.get().shuffleManager()).isInstanceOf(WeftShuffleManager.class);
      assertThat(conf.get("spark.sql.extensions"))
          .isEqualTo("io.weft.spark.sql.WeftSessionExtensions");
      assertThat(conf.contains("spark.serializer")).isFalse();
      assertThat(query(spark)).isEqualTo(100);
      assertThat(LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED)).isPositive();
    }
  }

  @Test
  void anotherManagerKeepsEverything() {
    assertStaysOff("spark.shuffle.manager", "sort");
  }

  /** {@code EncryptedDisksTest} checks that data on disk is encrypted. */
  @Test
  void encryptedLocalFilesLeaveWeftOn() {
    try (LocalSpark spark = LocalSpark.start(Map.of("spark.io.encryption.enabled", "true"))) {
      assertThat(SparkEnv.get().shuffleManager()).isInstanceOf(WeftShuffleManager.class);
      assertThat(query(spark)).isEqualTo(100);
      assertThat(LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED)).isPositive();
    }
  }

  private static void assertStaysOff(String key, String value) {
    try (LocalSpark spark = LocalSpark.start(Map.of(key, value))) {
      assertThat(SparkEnv.get().shuffleManager()).isNotInstanceOf(WeftShuffleManager.class);
      assertThat(SparkEnv.get().conf().contains("spark.sql.extensions")).isFalse();
      assertThat(SparkEnv.get().conf().get(key)).isEqualTo(value);
      assertThat(WeftExecutor.current()).isEmpty();
      assertThat(query(spark)).isEqualTo(100);
    }
  }

  @Test
  void anotherExtensionStaysAndWorks() {
    CountingExtension.applied.set(0);
    String name = CountingExtension.class.getName();
    try (LocalSpark spark = LocalSpark.start(Map.of("spark.sql.extensions", name))) {
      assertThat(SparkEnv.get().conf().get("spark.sql.extensions"))
          .isEqualTo(name + ",io.weft.spark.sql.WeftSessionExtensions");
      assertThat(query(spark)).isEqualTo(100);
      assertThat(CountingExtension.applied).hasPositiveValue();
    }
  }

  /** Counts how often a session applied it. */
  public static final class CountingExtension
      extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
    static final AtomicInteger applied = new AtomicInteger();

    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
      applied.incrementAndGet();
      return BoxedUnit.UNIT;
    }
  }

  @Test
  void theManagerWithoutThePluginIsSparksSortShuffle() {
    Map<String, String> settings = new HashMap<>();
    settings.put("spark.plugins", "");
    settings.put("spark.shuffle.manager", WeftShuffleManager.class.getName());
    try (LocalSpark spark = LocalSpark.start(settings)) {
      assertThat(query(spark)).isEqualTo(100);
      WeftShuffleManager manager = (WeftShuffleManager) SparkEnv.get().shuffleManager();
      assertThat(manager.fallbacks().counts())
          .containsOnlyKeys("the plugin does not serve this application");
    }
  }

  @Test
  void aWrongSettingStopsTheApplicationWithAnError() {
    assertThatThrownBy(() -> LocalSpark.start(Map.of("spark.weft.memory.segmentSize", "9q")))
        .isInstanceOf(InvalidSettingException.class)
        .hasMessageContaining("spark.weft.memory.segmentSize is set to '9q'");
  }

  private static long query(LocalSpark spark) {
    return spark.session().range(100).toDF().repartition(3).toJavaRDD().count();
  }
}
