package io.weft.examples.train;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LossLogTest {
  @TempDir Path folder;

  private LossLog log() {
    return new LossLog(folder.resolve("losses.csv"));
  }

  @Test
  void isEmptyBeforeTheFirstLine() throws IOException {
    assertThat(log().read()).isEmpty();
    assertThat(log().total()).isZero();
  }

  @Test
  void stepsRepeatedAfterARestartCountOnce() throws IOException {
    log().begin(10);
    log().append(0, 2);
    log().append(1, 1.5);
    log().begin(10);
    log().append(1, 1.25);
    assertThat(log().read()).isEqualTo(new TreeMap<>(Map.of(0L, 2.0, 1L, 1.25)));
    assertThat(log().total()).isEqualTo(10);
  }

  @Test
  void anIncompleteLineIsNotRead() throws IOException {
    log().append(0, 2);
    Files.writeString(log().file(), "1,0.", StandardOpenOption.APPEND);
    assertThat(log().read()).containsOnlyKeys(0L);
  }
}
