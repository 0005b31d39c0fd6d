package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.LocalSpark;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.junit.jupiter.api.Test;
import scala.jdk.javaapi.CollectionConverters;

/** Shuffles registered with Spark have not ended, even without readers. */
class EndedOnDriverTest {
  private static final int UNKNOWN = 4711;

  @Test
  void aShuffleHasEndedWhenSparkHasUnregisteredIt() {
    try (LocalSpark spark = LocalSpark.start(Map.of("spark.sql.adaptive.enabled", "false"))) {
      var rows = spark.session().range(100).repartition(3).queryExecution().toRdd();
      assertThat(rows.count()).isEqualTo(100);
      MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
      List<Integer> shuffles = new ArrayList<>();
      CollectionConverters.asJava(tracker.shuffleStatuses().keys())
          .forEach(shuffle -> shuffles.add((Integer) shuffle));
      assertThat(shuffles).isNotEmpty();
      List<Integer> asked = new ArrayList<>(shuffles);
      asked.add(UNKNOWN);
      assertThat(DriverState.ended(asked)).containsExactly(UNKNOWN);
      int first = shuffles.get(0);
      spark.session().sparkContext().cleaner().get().doCleanupShuffle(first, true);
      assertThat(DriverState.ended(asked)).containsExactlyInAnyOrder(first, UNKNOWN);
    }
  }
}
