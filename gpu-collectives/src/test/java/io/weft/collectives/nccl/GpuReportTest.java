package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import java.util.List;
import org.junit.jupiter.api.Test;

@UsesDoubles
class GpuReportTest {
  @Test
  void driverGpusAndNcclAreDescribed() {
    List<String> lines = GpuReport.lines(DoubleLibraries.options());
    assertThat(lines).hasSize(11);
    assertThat(lines.get(0)).startsWith("CUDA driver 12.8 in " + DoubleLibraries.folder());
    assertThat(lines.get(3)).startsWith("cuda:2 Weft test double 2, 2.0 GiB, uuid ");
    assertThat(lines.get(2)).endsWith(", without multicast");
    assertThat(lines.get(3)).endsWith(", with multicast");
    assertThat(lines.get(9)).startsWith("NCCL 2.30.7 in " + DoubleLibraries.folder());
    assertThat(lines.get(10)).isEqualTo("windows of NCCL: available");
    DoubleLibraries.assertClean();
  }
}
