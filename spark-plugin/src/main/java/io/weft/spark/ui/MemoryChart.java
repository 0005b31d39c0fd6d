package io.weft.spark.ui;

import static io.weft.spark.ui.Texts.bytes;

import io.weft.spark.ui.ExecutorRow.MemorySample;
import java.util.List;
import java.util.function.ToLongFunction;

/**
 * Draws the memory of an executor over time, in SVG: used as an area, reserved as a line, the
 * budget as a dashed and disk as a dotted line. Stateless.
 */
final class MemoryChart {
  private static final int WIDTH = 160;
  private static final int HEIGHT = 36;

  private final List<MemorySample> samples;
  private final long start;
  private final long duration;
  private final long most;
  private final StringBuilder svg = new StringBuilder();

  private MemoryChart(List<MemorySample> samples) {
    this.samples = samples;
    this.start = samples.get(0).time();
    this.duration = Math.max(1, samples.get(samples.size() - 1).time() - start);
    long highest = 1;
    for (MemorySample sample : samples) {
      highest = Math.max(highest, Math.max(sample.budget(), sample.disk()));
      highest = Math.max(highest, Math.max(sample.used(), sample.reserved()));
    }
    this.most = highest;
  }

  /** Returns the picture; empty if there is no sample. */
  static String svg(List<MemorySample> samples) {
    return samples.isEmpty() ? "" : new MemoryChart(samples).draw();
  }

  private String draw() {
    MemorySample last = samples.get(samples.size() - 1);
    svg.append(
        "<svg width=\"%d\" height=\"%d\" role=\"img\" fill=\"none\"".formatted(WIDTH, HEIGHT));
    svg.append(" stroke=\"currentColor\"><title>");
    svg.append(
        "Top: %s. Last: %s used (area), %s reserved (line), %s budget (dashed), %s on disk (dotted)"
            .formatted(
                bytes(most),
                bytes(last.used()),
                bytes(last.reserved()),
                bytes(last.budget()),
                bytes(last.disk())));
    svg.append("</title><rect width=\"160\" height=\"36\" fill=\"transparent\" stroke=\"none\"/>");
    svg.append("<path fill=\"#6a7fa8\" stroke=\"none\" d=\"M0 ").append(HEIGHT);
    steps(MemorySample::used);
    svg.append(" V").append(HEIGHT).append("\"/>");
    line("", MemorySample::reserved);
    line(" stroke-dasharray=\"5 3\"", MemorySample::budget);
    line(" stroke-dasharray=\"1 2\"", MemorySample::disk);
    return svg.append("</svg>").toString();
  }

  private void line(String style, ToLongFunction<MemorySample> value) {
    svg.append("<path").append(style).append(" d=\"M0 ").append(y(value, samples.get(0)));
    steps(value);
    svg.append("\"/>");
  }

  /** A value stays until the next sample. */
  private void steps(ToLongFunction<MemorySample> value) {
    for (MemorySample sample : samples) {
      svg.append(" H").append((sample.time() - start) * WIDTH / duration);
      svg.append(" V").append(y(value, sample));
    }
    svg.append(" H").append(WIDTH);
  }

  private long y(ToLongFunction<MemorySample> value, MemorySample sample) {
    return Math.round(HEIGHT - 1 - (HEIGHT - 2.0) * value.applyAsLong(sample) / most);
  }
}
