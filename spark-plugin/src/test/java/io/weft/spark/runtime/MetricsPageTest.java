package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.GeneratedPages;
import io.weft.spark.runtime.WeftMetrics.Metric;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class MetricsPageTest {
  @Test
  void theCommittedPageIsTheGeneratedOne() throws IOException {
    GeneratedPages.assertCommitted("metrics.md", MetricsPage.markdown());
  }

  @Test
  void namesAreUnique() {
    assertThat(WeftMetrics.all()).extracting(Metric::name).doesNotHaveDuplicates();
  }
}
