package io.weft.examples.bench.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.weft.examples.jobs.ShuffleJob;
import io.weft.examples.jobs.ShuffleJob.Exchange;
import java.nio.file.Path;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class WorkloadTest {
  private static final double TINY = 2e-5;

  @TempDir static Path folder;

  private static SparkSession session;

  @BeforeAll
  static void start() {
    session =
        SparkSession.builder()
            .master("local[2]")
            .config("spark.ui.enabled", false)
            .config("spark.sql.shuffle.partitions", 2)
            .config("spark.sql.warehouse.dir", folder.resolve("warehouse").toString())
            .getOrCreate();
  }

  @AfterAll
  static void stop() {
    session.stop();
  }

  @ParameterizedTest
  @EnumSource
  void isReadFromParquetOrComputed(Workload workload) {
    boolean written = workload.input(0.1, "/x").isPresent();
    assertThat(workload.job(0.1, "/x").source() instanceof ShuffleJob.Source.Parquet)
        .isEqualTo(written);
    assertThat(Workload.named(workload.id())).containsExactly(workload);
    assertThat(workload.rows(1e-12)).isEqualTo(1);
  }

  @ParameterizedTest
  @EnumSource
  void theShuffleKeepsAllRows(Workload workload) throws Exception {
    String input = folder.resolve(workload.id()).toString();
    if (workload.input(TINY, input).isPresent()) {
      assertThat(workload.input(TINY, input).get().run(session)).isPositive();
    }
    ShuffleJob job = workload.job(TINY, input);
    // A whole job may compute other rows, always the same.
    ShuffleJob same = workload.wholeJob() ? job : job.withoutShuffle();
    String before = new ShuffleJob.Fingerprint(same).run(session);
    assertThat(new ShuffleJob.Fingerprint(job).run(session)).isEqualTo(before).doesNotMatch("0/.*");
    assertThat(job.run(session).shuffleBytes()).isPositive();
    assertThat(session.sparkContext().getPersistentRDDs().isEmpty()).as("nothing cached").isTrue();
    if (!workload.wholeJob()) {
      assertThat(before).startsWith(workload.rows(TINY) + "/");
      assertThat(new ShuffleJob.PackedBytes(job.source()).run(session)).isPositive();
      assertThat(job.withoutShuffle().run(session).shuffleBytes()).isZero();
    }
  }

  @Test
  void smallBlocksHaveTwoHundredTasksAndFiftyColumns() {
    ShuffleJob job = Workload.SMALL_BLOCKS.job(1, "");
    ShuffleJob.Source.Computed source = (ShuffleJob.Source.Computed) job.source();
    assertThat(source.partitions()).isEqualTo(200);
    assertThat(source.expressions()).hasSize(50).doesNotHaveDuplicates();
    assertThat(job.exchange()).isEqualTo(new Exchange.Hash(200, "k"));
  }

  @Test
  void tinyBlocksHaveTenRowsAtEveryScale() {
    assertThat(Workload.TINY_BLOCKS.job(1, "").exchange()).isEqualTo(new Exchange.Hash(200, "k"));
    assertThat(Workload.TINY_BLOCKS.job(0.01, "").exchange()).isEqualTo(new Exchange.Hash(20, "k"));
  }

  @Test
  void groupsDoNotOverlap() {
    assertThat(Workload.named("shapes")).hasSize(11).noneMatch(Workload::wholeJob);
    assertThat(Workload.named("operators")).hasSize(6).allMatch(Workload::wholeJob);
  }

  @Test
  void anUnknownNameIsAnErrorThatListsTheNames() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Workload.named("numbers"))
        .withMessageContaining("numeric, strings, tensors, computed, small-blocks, decimals")
        .withMessageContaining("tpch and tpcds, and the groups shapes and operators");
  }
}
