package io.weft.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.ui.TrafficMatrix.Snapshot;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Bytes between executors, their groups, and the picture of them. */
class TrafficMatrixTest {
  private static final int PER_HOST = 10;

  private final TrafficMatrix matrix = new TrafficMatrix(TrafficMatrixTest::host);

  private static String host(String executor) {
    return "host-" + Integer.parseInt(executor) / PER_HOST;
  }

  /** Every executor reads 1 byte from each, and 10 more from itself. */
  private void all(int executors) {
    for (int reader = 0; reader < executors; reader++) {
      Map<String, Long> sources = new TreeMap<>();
      for (int source = 0; source < executors; source++) {
        sources.put("" + source, source == reader ? 11L : 1L);
      }
      matrix.add("" + reader, host("" + reader), false, sources);
    }
  }

  private static long sum(Snapshot snapshot) {
    return snapshot.bytes().stream().flatMap(List::stream).mapToLong(Long::longValue).sum();
  }

  @Test
  void executorsUpToTheLimitAreShownOneByOne() {
    all(64);
    Snapshot snapshot = matrix.snapshot();
    assertThat(snapshot.byHost()).isFalse();
    assertThat(snapshot.names()).hasSize(64).startsWith("0", "1", "2").endsWith("63");
    assertThat(snapshot.bytes().get(5).get(5)).isEqualTo(11);
    assertThat(snapshot.bytes().get(5).get(63)).isEqualTo(1);
  }

  @Test
  void moreExecutorsAreGroupedByHost() {
    all(64);
    all(200);
    Snapshot snapshot = matrix.snapshot();
    assertThat(snapshot.byHost()).isTrue();
    assertThat(snapshot.names()).hasSize(20).contains("host-0", "host-19");
    assertThat(sum(snapshot)).isEqualTo(64 * 74 + 200 * 210);
    int last = snapshot.names().indexOf("host-19");
    assertThat(snapshot.bytes().get(last).get(last)).isEqualTo(PER_HOST * (PER_HOST + 10));
  }

  @Test
  void hostsBeyondTheLimitAreOneGroup() {
    all(1000);
    Snapshot snapshot = matrix.snapshot();
    assertThat(snapshot.names()).hasSize(65).contains(TrafficMatrix.OTHERS);
    assertThat(sum(snapshot)).isEqualTo(1000 * 1010);
  }

  @Test
  void hostsThatAreReportedAreHosts() {
    matrix.add("3", "host-0", false, Map.of("3", 2L));
    matrix.add("3", "host-0", true, Map.of("", 3L, "host-1", 4L));
    Snapshot snapshot = matrix.snapshot();
    assertThat(snapshot.names()).containsExactly("host-0", "host-1");
    assertThat(snapshot.bytes()).containsExactly(List.of(5L, 4L), List.of(0L, 0L));
  }

  /** With 1000 executors, some names are before and some after that of the group of others. */
  @ParameterizedTest
  @CsvSource({"3", "100", "1000"})
  void aSnapshotCanBeSet(int executors) {
    matrix.add("0", "zone-host", true, Map.of("", 5L));
    all(executors);
    TrafficMatrix copy = new TrafficMatrix(TrafficMatrixTest::host);
    copy.set(matrix.snapshot());
    assertThat(copy.snapshot()).isEqualTo(matrix.snapshot());
  }

  @Test
  void thePictureHasACellWithItsFigureForEachPair() {
    matrix.add("1", "host-0", false, Map.of("1", 1L << 20, "2", 1L << 10));
    matrix.add("2", "host-0", false, Map.of("1", 1L << 30));
    String svg = HeatMap.svg(matrix.snapshot());
    assertThat(svg)
        .contains("fill=\"#00224e\"><title>1 read 1024.0 B from 2</title>")
        .contains("<title>1 read 1024.0 KiB from 1</title>")
        .contains("fill=\"#fee838\"><title>2 read 1024.0 MiB from 1</title>")
        .doesNotContain("2 read 0");
  }

  /** Each colour is clearly lighter than the one before, for readers who see no colours. */
  @Test
  void coloursDifferInLightness() {
    matrix.add("1", "h", false, Map.of("1", 1L, "2", 1L << 40));
    List<Double> lightness =
        Pattern.compile("height=\"10\" fill=\"#(..)(..)(..)\"")
            .matcher(HeatMap.svg(matrix.snapshot()))
            .results()
            .map(
                colour ->
                    0.2126 * Integer.parseInt(colour.group(1), 16)
                        + 0.7152 * Integer.parseInt(colour.group(2), 16)
                        + 0.0722 * Integer.parseInt(colour.group(3), 16))
            .toList();
    assertThat(lightness).hasSize(8);
    for (int i = 1; i < lightness.size(); i++) {
      assertThat(lightness.get(i) - lightness.get(i - 1)).isGreaterThan(15);
    }
  }
}
