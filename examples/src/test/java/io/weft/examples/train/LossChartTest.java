package io.weft.examples.train;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

class LossChartTest {
  private static NavigableMap<Long, Double> curve(int steps) {
    NavigableMap<Long, Double> curve = new TreeMap<>();
    for (long step = 0; step < steps; step++) {
      curve.put(step, 2.0 / (1 + step));
    }
    return curve;
  }

  private static long lines(String svg) {
    return svg.lines().filter(line -> line.contains("stroke-width=\"1.6\"")).count();
  }

  @Test
  void everyTrainingHasALineAndAName() {
    Map<String, NavigableMap<Long, Double>> curves = new LinkedHashMap<>();
    curves.put("Weft feed", curve(10));
    curves.put("Spark & Parquet", curve(8));
    String svg = new LossChart(curves, "a <test>").toSvg();
    assertThat(svg).contains(">Weft feed<", ">Spark &amp; Parquet<", "a &lt;test&gt;");
    assertThat(lines(svg)).isEqualTo(9 + 7);
    assertThat(svg).doesNotContain("NaN", "Infinity");
  }

  @Test
  void aLongCurveIsSmoothed() {
    assertThat(lines(new LossChart(Map.of("one", curve(10_000)), "").toSvg()))
        .isBetween(300L, 400L);
  }

  @Test
  void aSingleStepIsDrawn() {
    assertThat(new LossChart(Map.of("one", curve(1)), "").toSvg()).doesNotContain("NaN");
  }

  @Test
  void theProgressBarFillsUp() {
    assertThat(TrainRun.TrainingProgress.line("run", 15, 30, 0.5))
        .isEqualTo("run " + "█".repeat(15) + "░".repeat(15) + " step 15 of 30, loss 0.500");
    assertThat(TrainRun.TrainingProgress.line("run", 1, 0, 0.5)).contains("░".repeat(30));
    assertThat(TrainRun.TrainingProgress.line("run", 30, 30, 0.5)).contains("█".repeat(30));
  }
}
