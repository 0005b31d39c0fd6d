package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The Weft tab of an application with several executors, over HTTP. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
class MonitoringTest {
  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.ui.enabled", "true")
          .set("spark.ui.port", "0")
          .set("spark.weft.adopt.enabled", "true");

  private static final int MAP_TASKS = 8;

  private static String get(String path) throws IOException {
    String url = CLUSTER.context().uiWebUrl().get() + path;
    try (InputStream in = URI.create(url).toURL().openStream()) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  private static JsonNode json() throws IOException {
    return new ObjectMapper().readTree(get("/weft/json?pageSize=500"));
  }

  private static long sum(JsonNode rows, String name) {
    return rows.findValues(name).stream().mapToLong(JsonNode::longValue).sum();
  }

  @Test
  @Order(1)
  void figuresOfAllExecutorsEqualTheirMetrics() throws IOException {
    CLUSTER.session().range(200_000).toDF().repartition(16).toJavaRDD().count();
    CLUSTER.session().range(100_000).toDF().repartition(4).toJavaRDD().count();
    long own = CLUSTER.sum("localBytes");
    long sameHost = CLUSTER.sum("sameHostBytes");
    assertThat(sameHost).isPositive();
    await()
        .atMost(Duration.ofMinutes(3))
        .untilAsserted(
            () -> {
              JsonNode shuffles = json().at("/shuffles/rows");
              assertThat(sum(shuffles, "own")).isEqualTo(own);
              assertThat(sum(shuffles, "sameHost")).isEqualTo(sameHost);
            });
    JsonNode bytes = json().at("/traffic/bytes");
    assertThat(json().at("/traffic/names").toString()).isEqualTo("[\"0\",\"1\"]");
    assertThat(bytes.at("/0/0").longValue() + bytes.at("/1/1").longValue()).isEqualTo(own);
    assertThat(bytes.at("/0/1").longValue() + bytes.at("/1/0").longValue()).isEqualTo(sameHost);
    assertThat(get("/weft/")).contains("<title>0 read ", " from 1</title>", "200,000");
  }

  @Test
  @Order(2)
  void adoptedOutputsAreCountedAtTheirShuffle() {
    JavaRDD<Row> rows =
        CLUSTER.session().range(0, 1000, 1, MAP_TASKS).toDF().repartition(4).toJavaRDD();
    assertThat(rows.count()).isEqualTo(1000);
    int shuffle = MapOutputs.lastShuffle();
    ExecutorProcess victim = CLUSTER.executors().get(0);
    long outputs = MapOutputs.at(shuffle, victim);
    assertThat(outputs).isPositive();
    victim.kill();
    MapOutputs.awaitElsewhere(shuffle, victim, MAP_TASKS);
    await()
        .atMost(Duration.ofMinutes(1))
        .untilAsserted(
            () -> {
              JsonNode row = json().at("/shuffles/rows/0");
              assertThat(row.get("id").asInt()).isEqualTo(shuffle);
              assertThat(row.get("adopted").asLong()).isEqualTo(outputs);
              assertThat(row.get("recomputed").asLong()).isZero();
            });
    CLUSTER.awaitExecutors();
  }
}
