package io.weft.spark.collectives;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;

class PluginOffTest {
  @Test
  void withoutThePluginTheErrorNamesTheSetting() throws Exception {
    SparkSession.clearActiveSession();
    SparkSession.clearDefaultSession();
    try (SparkSession session =
        SparkSession.builder()
            .master("local[1]")
            .appName("without-weft")
            .config("spark.driver.host", "localhost")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .getOrCreate()) {
      assertThatThrownBy(
              () ->
                  BarrierJobs.run(
                      session.sparkContext(),
                      1,
                      task -> WeftCollectives.communicator(task).toString()))
          .hasStackTraceContaining("Is spark.plugins set to io.weft.spark.WeftPlugin");
    }
  }
}
