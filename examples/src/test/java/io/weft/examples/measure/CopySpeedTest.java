package io.weft.examples.measure;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class CopySpeedTest {
  @Test
  void isPlausible() throws InterruptedException {
    assertThat(CopySpeed.measure(1)).isBetween(1e7, 1e13);
  }
}
