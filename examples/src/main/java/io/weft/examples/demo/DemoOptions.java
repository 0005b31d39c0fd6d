package io.weft.examples.demo;

import io.weft.examples.tpch.TpchQuery;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * What to show.
 *
 * @param scale the TPC-H scale factor, more than 0
 * @param queries in the order to run them
 * @param runs of each query on each side that count, at least 1; one more before them warms up
 * @param data a folder of tables to reuse or to create; none: a temporary one
 * @param transport a value of spark.weft.transport
 * @param keep whether the temporary folder with its logs stays
 */
public record DemoOptions(
    double scale,
    List<TpchQuery> queries,
    int runs,
    Optional<Path> data,
    String transport,
    boolean keep) {
  public DemoOptions {
    queries = List.copyOf(queries);
    if (!(scale > 0)) {
      throw new IllegalArgumentException("the scale must be more than 0, not " + scale);
    }
    if (runs < 1) {
      throw new IllegalArgumentException("at least one run is needed, not " + runs);
    }
  }
}
