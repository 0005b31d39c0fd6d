package io.weft.examples.bench.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.weft.examples.jobs.ShuffleJob;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class WorkloadTest {
  @ParameterizedTest
  @EnumSource
  void isReadFromParquetOrComputed(Workload workload) {
    boolean written = workload.input(0.1, "/x").isPresent();
    assertThat(workload.source(0.1, "/x") instanceof ShuffleJob.Source.Parquet).isEqualTo(written);
    assertThat(Workload.of(workload.id())).isEqualTo(workload);
    assertThat(workload.rows(1e-12)).isEqualTo(1);
  }

  @Test
  void smallBlocksHaveTwoHundredTasksAndFiftyColumns() {
    ShuffleJob.Source.Computed source =
        (ShuffleJob.Source.Computed) Workload.SMALL_BLOCKS.source(1, "");
    assertThat(source.partitions()).isEqualTo(200);
    assertThat(source.expressions()).hasSize(50).doesNotHaveDuplicates();
    assertThat(Workload.SMALL_BLOCKS.partitions()).isEqualTo(200);
    assertThat(Workload.SMALL_BLOCKS.computedRowBytes()).isEqualTo(400);
  }

  @Test
  void anUnknownNameIsAnErrorThatListsTheNames() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> Workload.of("numbers"))
        .withMessageContaining("numeric, strings, tensors, computed, small-blocks, tpch and tpcds");
  }
}
