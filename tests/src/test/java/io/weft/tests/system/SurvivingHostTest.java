package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.DirectFetch;
import io.weft.tests.support.Folders;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.Rows;
import io.weft.tests.support.TaskLog;
import io.weft.tests.workload.Queries;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** Copies of blocks that are in memory. */
class SurvivingHostTest extends SurvivingHostContract {
  /** Spark's fetch iterator takes copies for its own blocks, and blames the reader. */
  @Test
  void copiesAreFetchedWithoutWeftsReaderAndComputedAgainIfDamaged() throws IOException {
    Queries.configure(cluster.session(), false);
    long before = cluster.sum(COPIED);
    JavaRDD<String> rows = DirectFetch.shuffled(cluster.session().sql(SQL), 6, false);
    List<String> expected = sorted(rows);
    assertThat(expected).hasSize(25_000);
    cluster.awaitSum(COPIED, before + MAP_TASKS);
    killAll();
    try (TaskLog log = TaskLog.open(cluster.context())) {
      Rows.assertSame("from copies", expected, sorted(rows));
      assertThat(log.mapTasks()).as("map tasks").isZero();
    }
    damageCopies();
    try (TaskLog log = TaskLog.open(cluster.context())) {
      Rows.assertSame("with damaged copies", expected, sorted(rows));
      assertThat(log.mapTasks()).as("map tasks").isEqualTo(MAP_TASKS);
    }
  }

  /** The folder of the application goes at its end. */
  @Test
  void copiesGoWithTheirShuffle() {
    JavaRDD<String> rows = shuffled("rows");
    List<String> all = sorted(rows);
    int shuffle = MapOutputs.lastShuffle();
    Awaitility.await().until(() -> !copiesOf(shuffle).isEmpty());
    Rows.assertSame("again", all, sorted(rows));
    rows = null;
    Awaitility.await("no copies")
        .atMost(Duration.ofMinutes(1))
        .untilAsserted(
            () -> {
              System.gc();
              assertThat(copiesOf(shuffle)).isEmpty();
            });
    assertThat(Folders.tree(cluster.copies()).stream().filter(Files::isRegularFile))
        .extracting(file -> file.getFileName().toString())
        .contains("alive");
  }
}
