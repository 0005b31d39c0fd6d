package io.weft.examples.bench.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.weft.examples.measure.Report;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ShuffleFilesTest {
  @TempDir private Path folder;

  @Test
  void jsonHoldsEveryRun() throws IOException {
    JsonNode report = new ObjectMapper().readTree(ShuffleReports.example().toJson());
    JsonNode shm = report.path("results").path(0).path("sides").path(1);
    assertThat(report.path("copyBytesPerSecond").asDouble()).isEqualTo(8e9);
    assertThat(shm.path("side").asText()).isEqualTo("weft-shm");
    assertThat(shm.path("shuffleSeconds").path("values").size()).isEqualTo(3);
    assertThat(shm.path("shuffleSeconds").path("median").asDouble()).isEqualTo(0.71);
    assertThat(shm.path("timesFaster").asDouble()).isEqualTo(3.2 / 0.71);
    assertThat(shm.path("laterFreshBytes").asLong(-1)).isZero();
  }

  @Test
  void createsTheFolderReplacesOldReportsAndReadsTheNewOneBack() throws IOException {
    Path out = folder.resolve("a/b");
    ShuffleReports.example().write(out);
    List<Path> files = ShuffleReports.example().write(out);
    assertThat(files).hasSize(3).allSatisfy(file -> assertThat(file).isNotEmptyFile());
    assertThat(Report.read(files.get(0), ShuffleReport.class)).isEqualTo(ShuffleReports.example());
  }
}
