package io.weft.examples.bench;

import io.weft.examples.tpch.TpchQuery;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/**
 * What to measure.
 *
 * @param workloads in order
 * @param queries of TPC-H, whole; may be empty
 * @param transports of Weft to compare with Spark: shm, tcp
 * @param factor of rows, 1 is a full run
 * @param tpchScale the scale of the queries' tables
 * @param runs on each side that count, at least 1
 * @param budget for all measurements; when it is spent, workloads get fewer runs, but at least two
 * @param out a folder for the reports
 * @param keep whether the temporary folder with its logs stays
 */
public record ShuffleBenchOptions(
    List<Workload> workloads,
    List<TpchQuery> queries,
    List<String> transports,
    double factor,
    double tpchScale,
    int runs,
    Duration budget,
    Path out,
    boolean keep) {
  /** The name that stands for the queries among the workloads. */
  public static final String TPCH = "tpch";

  public ShuffleBenchOptions {
    workloads = List.copyOf(workloads);
    queries = List.copyOf(queries);
    transports = List.copyOf(transports);
    if (!(factor > 0)) {
      throw new IllegalArgumentException("there must be rows to shuffle, not " + factor + " times");
    }
    if (runs < 1) {
      throw new IllegalArgumentException("at least one run is needed, not " + runs);
    }
  }

  /** How many things are measured: workloads and queries. */
  public int subjects() {
    return workloads.size() + queries.size();
  }
}
