package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.collectives.DataType;
import io.weft.spark.LocalSpark;
import io.weft.spark.feed.StepDump.TensorStatistics;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.BarrierTaskContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The dump of a rank's step, and of ranks that fail before the step or never reach it. */
class StepDumpTest {
  private static LocalSpark spark;

  @TempDir Path folder;

  @BeforeAll
  static void start() {
    spark = LocalSpark.start(Map.of("spark.master", "local[2,4]"));
  }

  @AfterAll
  static void stop() {
    spark.close();
  }

  private JsonNode dump(int step, int rank) throws IOException {
    train(step, task -> FeedData.epoch(task, 0).size() + FeedData.epoch(task, 1).size());
    return read(rank);
  }

  /** Of the newest feed. */
  private JsonNode read(int rank) throws IOException {
    return new ObjectMapper().readTree(newest(rank).toFile());
  }

  private Path newest(int rank) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .filter(file -> file.toString().endsWith("-rank-" + rank + ".json"))
          .max(Comparator.comparingInt(StepDumpTest::feed))
          .orElseThrow();
    }
  }

  private static int feed(Path file) {
    String name = file.getFileName().toString();
    return Integer.parseInt(name.substring(name.indexOf("-feed-") + 6, name.indexOf("-rank-")));
  }

  private void train(int step, FeedFunction<Integer> function) {
    spark.session().conf().set("spark.weft.debug.dumpStep", String.valueOf(step));
    spark.session().conf().set("spark.weft.debug.dumpFolder", folder.toString());
    try {
      WeftFeed.shards(FeedData.rows(spark.session(), 100, 2), 2).batchRows(10).train(function);
    } finally {
      spark.session().conf().unset("spark.weft.debug.dumpStep");
      spark.session().conf().unset("spark.weft.debug.dumpFolder");
    }
  }

  /** Ids 0 to 49 belong to the first map task: rank 0 has its batches 0, 2 and 4. */
  @Test
  void theStepIsDumped() throws IOException {
    JsonNode dump = dump(7, 0);
    assertThat(dump.get("reached").asBoolean()).isTrue();
    assertThat(dump.get("epoch").asInt()).isEqualTo(1);
    assertThat(dump.get("plan").get("steps").asInt()).isEqualTo(5);
    assertThat(dump.get("plan").get("batches").get(2).get(0).asText())
        .isEqualTo("map 0, partition 0, chunk 2, rows 0 to 9");
    assertThat(dump.get("transfers").get("localBytes").asLong()).isPositive();
    JsonNode batch = dump.get("batch");
    assertThat(batch.get("rows").asInt()).isEqualTo(10);
    assertThat(batch.get("inPlace").asBoolean()).isTrue();
    JsonNode x = batch.get("tensors").get("x");
    assertThat(x.get("type").asText()).isEqualTo("float32[2, 3]");
    assertThat(x.get("min").asDouble()).isEqualTo(40);
    assertThat(x.get("max").asDouble()).isEqualTo(49 + 5);
    assertThat(x.get("mean").asDouble()).isEqualTo(44.5 + 2.5);
    assertThat(x.get("zeros").asInt()).isZero();
  }

  @Test
  void aStepThatIsNeverReachedIsReported() throws IOException {
    JsonNode dump = dump(10, 1);
    assertThat(dump.get("reached").asBoolean()).isFalse();
    assertThat(dump.get("step").asInt()).isEqualTo(10);
    assertThat(dump.get("taken").asInt()).isEqualTo(10);
    assertThat(dump.has("failed")).isFalse();
  }

  /** Simulates a training that resumes from a checkpoint: its first batch is not the feed's. */
  @Test
  void anAttemptThatBeginsInALaterEpochCountsItsBatchesOn() throws IOException {
    train(7, task -> FeedData.epoch(task, 1).size());
    JsonNode dump = read(0);
    assertThat(dump.get("reached").asBoolean()).isTrue();
    assertThat(dump.get("epoch").asInt()).isEqualTo(1);
    assertThat(dump.get("batch").get("tensors").get("x").get("min").asDouble()).isEqualTo(40);
    train(2, task -> FeedData.epoch(task, 1).size());
    assertThat(read(0).get("reached").asBoolean()).isFalse();
    assertThat(read(0).get("taken").asInt()).isEqualTo(5);
    assertThat(read(0).get("last").asInt()).isEqualTo(9);
  }

  @Test
  void anAttemptThatBeginsAfterTheStepKeepsTheEarlierDump() throws IOException {
    train(
        2,
        task -> {
          int attempt = BarrierTaskContext.get().stageAttemptNumber();
          int batches = FeedData.epoch(task, attempt).size();
          task.communicator().barrier();
          if (attempt == 0) {
            throw new IllegalStateException("the first attempt, as the test asked");
          }
          return batches;
        });
    assertThat(read(0).get("reached").asBoolean()).isTrue();
    assertThat(read(0).get("epoch").asInt()).isZero();
    assertThat(read(1).get("reached").asBoolean()).isTrue();
  }

  /** The file of another application, or of a run with another dump step. */
  @Test
  void aFileOfAnotherRunDoesNotHideThatTheStepWasNotReached() throws IOException {
    assertThat(dump(10, 0).get("application").asText())
        .isEqualTo(spark.session().sparkContext().applicationId());
    String own = spark.session().sparkContext().applicationId();
    int feed = feed(newest(0));
    for (int next = feed + 1; next < feed + 20; next++) {
      Files.writeString(
          folder.resolve("%s-feed-%d-rank-0.json".formatted(own, next)),
          "{\"reached\":true,\"step\":%d,\"application\":\"%s\"}"
              .formatted(next % 2 == 0 ? 9 : 10, next % 2 == 0 ? own : "app-1"));
    }
    for (int runs = 1; runs <= 2; runs++) {
      train(10, task -> FeedData.epoch(task, 0).size());
      assertThat(notReached()).isEqualTo(1 + runs);
    }
  }

  /** Number of files of rank 0 that report that the step was not reached. */
  private long notReached() throws IOException {
    long found = 0;
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.filter(each -> each.toString().endsWith("-rank-0.json")).toList()) {
        found += new ObjectMapper().readTree(file.toFile()).get("reached").asBoolean() ? 0 : 1;
      }
    }
    return found;
  }

  @Test
  void aLaterFeedLeavesTheFilesOfOneBefore() throws IOException {
    JsonNode first = dump(7, 0);
    JsonNode second = dump(50, 0);
    assertThat(first.get("reached").asBoolean()).isTrue();
    assertThat(second.get("reached").asBoolean()).isFalse();
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files).hasSize(4);
    }
  }

  /** The failure must be reported, not a step that was set too high. */
  @Test
  void aRankThatFailsBeforeTheStepReportsIt() throws IOException {
    assertThatThrownBy(
            () ->
                train(
                    7,
                    task -> {
                      int steps = FeedData.epoch(task, 0).size();
                      task.communicator().barrier();
                      throw new IllegalStateException("failed after " + steps + " steps");
                    }))
        .hasStackTraceContaining("failed after 5 steps");
    JsonNode dump = read(0);
    assertThat(dump.get("reached").asBoolean()).isFalse();
    assertThat(dump.get("taken").asInt()).isEqualTo(5);
    // Either its own failure, or the earlier failure of the other rank.
    assertThat(dump.get("failed").asText()).isNotBlank();
  }

  @Test
  void statisticsExcludeNonFiniteValues() {
    try (Tensor tensor = Tensor.allocate(TensorType.of(DataType.FLOAT64, 6))) {
      double[] values = {Double.NaN, -1, 0, 4, Double.NEGATIVE_INFINITY, -0.0};
      for (int i = 0; i < values.length; i++) {
        tensor.byteBuffer().putDouble(8 * i, values[i]);
      }
      assertThat(TensorStatistics.of(tensor)).isEqualTo(new TensorStatistics(-1, 4, 0.75, 2, 1, 1));
    }
    assertThat(TensorStatistics.of(Tensor.empty(DataType.INT8)).min()).isNaN();
  }
}
