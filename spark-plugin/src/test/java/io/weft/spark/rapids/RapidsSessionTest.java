package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;

import com.nvidia.spark.rapids.spark413.RapidsShuffleManager;
import io.weft.spark.LocalSpark;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.junit.jupiter.api.Test;

/** A session with both plugins. spark-rapids' plugin and manager are stubs. */
class RapidsSessionTest {
  private static final String PLUGINS = "io.weft.spark.WeftPlugin,com.nvidia.spark.SQLPlugin";
  private static final String MANAGER = RapidsShuffleManager.class.getName();

  private static Map<String, String> settings(String key, String value) {
    Map<String, String> settings = new HashMap<>();
    settings.put("spark.plugins", PLUGINS);
    settings.put(key, value);
    return settings;
  }

  private static long query(LocalSpark spark) {
    return spark.session().range(100).toDF().repartition(3).toJavaRDD().count();
  }

  @Test
  void theManagerStaysAndItsTransportIsWefts() {
    try (LocalSpark spark = LocalSpark.start(settings("spark.shuffle.manager", MANAGER))) {
      SparkConf conf = SparkEnv.get().conf();
      assertThat(SparkEnv.get().shuffleManager()).isInstanceOf(RapidsShuffleManager.class);
      assertThat(conf.get("spark.rapids.shuffle.mode")).isEqualTo("UCX");
      assertThat(conf.get("spark.rapids.shuffle.transport.class"))
          .isEqualTo(WeftRapidsTransport.class.getName());
      assertThat(conf.contains("spark.sql.extensions")).isFalse();
      assertThat(WeftExecutor.current()).isPresent();
      assertThat(query(spark)).isEqualTo(100);
    }
  }

  @Test
  void anObstacleLeavesAllSettingsUnchanged() {
    Map<String, String> settings = settings("spark.shuffle.manager", MANAGER);
    settings.put("spark.rapids.shuffle.mode", "MULTITHREADED");
    try (LocalSpark spark = LocalSpark.start(settings)) {
      SparkConf conf = SparkEnv.get().conf();
      assertThat(conf.get("spark.rapids.shuffle.mode")).isEqualTo("MULTITHREADED");
      assertThat(conf.contains("spark.rapids.shuffle.transport.class")).isFalse();
      assertThat(WeftExecutor.current()).isEmpty();
      assertThat(query(spark)).isEqualTo(100);
    }
  }

  /** Without spark-rapids' manager Weft carries the shuffles. */
  @Test
  void bothPluginsWithoutTheManager() {
    try (LocalSpark spark = LocalSpark.start(settings("spark.weft.route", "rows"))) {
      assertThat(SparkEnv.get().shuffleManager()).isInstanceOf(WeftShuffleManager.class);
      assertThat(SparkEnv.get().conf().contains("spark.rapids.shuffle.mode")).isFalse();
      assertThat(query(spark)).isEqualTo(100);
    }
  }
}
