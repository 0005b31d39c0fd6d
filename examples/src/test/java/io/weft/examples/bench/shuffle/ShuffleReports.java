package io.weft.examples.bench.shuffle;

import io.weft.examples.measure.Spread;
import java.util.List;
import java.util.Map;

/** An example report for tests. */
final class ShuffleReports {
  private ShuffleReports() {}

  static ShuffleReport example() {
    return new ShuffleReport(
        "2026-01-02T03:04:05Z",
        "0.1.0",
        "4.1.3",
        "17.0.15",
        "Linux 6.1",
        2,
        "local-cluster[2,1,2048]",
        Map.of("spark.x", "1"),
        8e9,
        3,
        5,
        List.of(
            shuffle("numeric", "numeric columns from Parquet", 720_000_000, 3.2, 0.71, 1.9),
            shuffle("strings", "strings from Parquet", 560_000_000, 2.9, 0.65, 2.2),
            shuffle("tensors", "tensors of 1,024 floats", 615_000_000, 2.4, 0.41, 1.2),
            shuffle("computed", "computed rows", 600_000_000, 3.4, 1.15, 2.0),
            shuffle("small-blocks", "200 × 200 blocks of 50 columns", 640_000_000, 5.1, 1.2, 3),
            query("tpch-q3", "TPC-H Q3", 4.0, 2.5),
            query("tpch-q18", "TPC-H Q18", 6.0, 6.1)),
        0);
  }

  static ShuffleReport.WorkloadResult shuffle(
      String id, String title, long bytes, double spark, double shm, double tcp) {
    return new ShuffleReport.WorkloadResult(
        id,
        title,
        false,
        10_000_000,
        bytes,
        8e9,
        null,
        List.of(
            side("sort", "Spark", spark, 0, 0),
            side("weft-shm", "Weft/shm", shm, bytes, 0),
            side("weft-tcp", "Weft/tcp", tcp, bytes / 2, bytes / 2)));
  }

  static ShuffleReport.WorkloadResult query(String id, String title, double spark, double weft) {
    return new ShuffleReport.WorkloadResult(
        id,
        title,
        true,
        0,
        0,
        8e9,
        null,
        List.of(side("sort", "Spark", spark, 0, 0), side("weft-shm", "Weft/shm", weft, 1, 0)));
  }

  private static ShuffleReport.SideResult side(
      String name, String label, double seconds, long inPlace, long network) {
    Spread spread = Spread.of(seconds * 0.9, seconds, seconds * 1.2);
    return new ShuffleReport.SideResult(
        name,
        label,
        Spread.of(0.5),
        Spread.of(seconds + 0.5),
        spread,
        spread,
        Spread.of(seconds * 2),
        inPlace + network,
        inPlace / 2,
        inPlace - inPlace / 2,
        network,
        0,
        1_000_000,
        0);
  }
}
