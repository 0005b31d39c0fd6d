package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.Folders;
import io.weft.tests.support.MapOutputs;
import io.weft.tests.support.Rows;
import java.nio.file.Files;
import java.time.Duration;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;

/** Copies of blocks that are in memory. */
class SurvivingHostTest extends SurvivingHostContract {
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
