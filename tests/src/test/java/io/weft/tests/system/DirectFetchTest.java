package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.DirectFetch;
import io.weft.tests.application.ExecutorProbe;
import io.weft.tests.support.Folders;
import io.weft.tests.support.Rows;
import io.weft.tests.support.Sessions;
import io.weft.tests.support.ShuffleService;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Blocks of Weft that a program fetches by Spark's fetch iterator: own ones, those of the other
 * executor of the host by its folders, and those that come over the network.
 */
class DirectFetchTest {
  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @ParameterizedTest(name = "{0}={1}")
  @CsvSource({
    "spark.shuffle.readHostLocalDisk, true",
    "spark.shuffle.readHostLocalDisk, false",
    "spark.shuffle.compress, false",
    "spark.io.encryption.enabled, true"
  })
  void rowsAreThoseThatWereWritten(String key, String value) throws IOException {
    check(Map.of(key, value), 8);
  }

  /** With one map task, the other executor has run no task of the shuffle. */
  @ParameterizedTest(name = "with Weft''s Kryo registrator: {0}")
  @ValueSource(booleans = {false, true})
  void alsoInAnExecutorWithoutATaskOfTheShuffle(boolean kryo) throws IOException {
    check(
        kryo
            ? Map.of(
                "spark.serializer",
                "org.apache.spark.serializer.KryoSerializer",
                "spark.kryo.registrator",
                "io.weft.spark.WeftKryoRegistrator")
            : Map.of(),
        1);
  }

  @Test
  void alsoWithAnExternalShuffleServiceThatHasNoBlockOfWeft() throws IOException {
    try (ShuffleService service = ShuffleService.start()) {
      check(service.settings(), 8);
    }
  }

  private static void check(Map<String, String> settings, int maps) throws IOException {
    try (SparkSession session = Sessions.weft(WORKSPACE, "local-cluster[2,1,1024]", settings)) {
      Dataset<Row> data =
          session.sql(
              "SELECT id % 1000 AS k, REPEAT(STRING(id), 3) AS s FROM RANGE(0, 30000, 1, "
                  + maps
                  + ")");
      List<String> expected =
          data.collectAsList().stream()
              .map(row -> row.getLong(0) + " " + row.getString(1))
              .sorted()
              .toList();
      long before = ExecutorProbe.sum(session.sparkContext(), "outputsPublished");
      for (boolean batches : new boolean[] {false, true}) {
        List<String> rows = DirectFetch.rows(data, 6, batches).stream().sorted().toList();
        Rows.assertSame(batches ? "batches of blocks" : "single blocks", expected, rows);
      }
      assertThat(ExecutorProbe.sum(session.sparkContext(), "outputsPublished") - before)
          .as("map outputs of Weft")
          .isEqualTo(2 * maps);
      Awaitility.await("no temporary file left")
          .atMost(Duration.ofMinutes(3))
          .untilAsserted(
              () ->
                  assertThat(Folders.tree(WORKSPACE.localFolder()))
                      .noneMatch(file -> file.getFileName().toString().startsWith("temp_local")));
    }
  }
}
