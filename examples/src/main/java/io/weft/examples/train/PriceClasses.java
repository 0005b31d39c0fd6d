package io.weft.examples.train;

import io.weft.collectives.DataType;
import io.weft.spark.feed.WeftTensors;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * The data set of the example: the price class of a TPC-H order. Features are quantity, list price,
 * discount and tax of up to seven lines. A model has to learn that the price is the sum of their
 * products. All classes have the same number of orders.
 *
 * <p>Spark SQL computes it from the tables {@code orders}, {@code lineitem} and {@code part}; equal
 * tables give equal data. Stateless.
 */
public final class PriceClasses {
  /** The column of features, a tensor of {@link #FEATURE_COUNT} float32. */
  public static final String FEATURES = "features";

  /** The column of classes, an int from 0 to {@link #CLASSES} - 1. */
  public static final String LABEL = "label";

  /** The number of price classes. */
  public static final int CLASSES = 8;

  private static final int LINES = 7;
  private static final int FEATURES_OF_LINE = 4;

  /** The number of features of an order. */
  public static final int FEATURE_COUNT = LINES * FEATURES_OF_LINE;

  /** Every tenth order belongs to the test set. */
  private static final int TEST_PART = 10;

  private PriceClasses() {}

  /**
   * Returns the training set or the test set, which are disjoint.
   *
   * @param session with the tables of TPC-H registered by name
   */
  public static Dataset<Row> of(SparkSession session, boolean test) {
    Dataset<Row> rows = session.sql(sql(bounds(session), test));
    return rows.select(
        WeftTensors.column(FEATURES, DataType.FLOAT32, FEATURE_COUNT), rows.col(LABEL));
  }

  /** Returns the prices between the classes. */
  private static String bounds(SparkSession session) {
    List<String> parts =
        IntStream.range(1, CLASSES).mapToObj(i -> (double) i / CLASSES + "D").toList();
    Row row =
        session
            .sql(
                "SELECT percentile_approx(CAST(o_totalprice AS DOUBLE), array("
                    + String.join(", ", parts)
                    + "), 100000) FROM orders")
            .first();
    return row.getList(0).stream()
        .map(bound -> bound + "D")
        .collect(Collectors.joining(", ", "array(", ")"));
  }

  private static String sql(String bounds, boolean test) {
    return """
    SELECT
      transform(sequence(0, %d), i -> CAST(coalesce(get(flat, i), 0) AS FLOAT)) AS features,
      size(filter(%s, bound -> price > bound)) AS label
    FROM (
      SELECT
        CAST(first(o_totalprice) AS DOUBLE) AS price,
        flatten(transform(sort_array(collect_list(struct(l_linenumber AS n, line))), s -> s.line))
          AS flat
      FROM (
        SELECT o_orderkey, o_totalprice, l_linenumber,
          array(
            CAST(l_quantity AS DOUBLE) / 25, CAST(p_retailprice AS DOUBLE) / 1500,
            CAST(l_discount AS DOUBLE) * 10, CAST(l_tax AS DOUBLE) * 10) AS line
        FROM orders JOIN lineitem ON o_orderkey = l_orderkey JOIN part ON l_partkey = p_partkey
        WHERE hash(o_orderkey) %% %d %s 0)
      GROUP BY o_orderkey)
    """
        .formatted(FEATURE_COUNT - 1, bounds, TEST_PART, test ? "=" : "<>");
  }
}
