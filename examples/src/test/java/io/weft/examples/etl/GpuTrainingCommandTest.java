package io.weft.examples.etl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.probe.ProbeOptions;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GpuTrainingCommandTest {
  @Test
  void aMachineWithoutADriverIsToldWhatIsMissing(@TempDir Path root) {
    ProbeOptions options = ProbeOptions.defaults().withRoot(root).withEnvironment(Map.of());
    assertThat(GpuTrainingCommand.missing(options)).get().asString().contains("libcuda");
  }
}
