package io.weft.spark.feed;

import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.sql.DeviceRoute;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The input of a feed's map tasks, on the driver. Its query runs once, also if the feed reads the
 * input twice.
 *
 * @param elements rows; with keys, followed by the rank of each row. Or batches in place of rows,
 *     without ranks
 * @param batches whether the elements are batches
 * @param keys numbers of the key columns in the feed; none if the feed has no keys, or a key is not
 *     one of its columns
 */
record FeedInput(RDD<InternalRow> elements, boolean batches, List<Integer> keys) {
  private static final Logger LOG = LoggerFactory.getLogger(FeedInput.class);

  /** Prepares the input. Runs all exchanges of a query that ends on GPUs. */
  static FeedInput of(Dataset<Row> data, FeedSpec spec, List<String> keyNames) {
    if (spec.byKey()) {
      // Spark's analysis refuses keys that cannot be hashed, such as maps.
      Dataset<Row> unused = data.select(hash(data, keyNames));
    }
    QueryExecution query = query(data);
    List<Integer> keys = columns(query, keyNames);
    boolean onDevices = DeviceRoute.endsOnDevices(query);
    if (keys.size() < keyNames.size()) {
      if (onDevices) {
        LOG.info(
            "Batches on GPUs become rows for a feed, because a key of {} is not one of its columns",
            keyNames);
      }
      return new FeedInput(withKeys(data, spec, keyNames), false, List.of());
    }
    Optional<RDD<InternalRow>> batches = onDevices ? DeviceRoute.batches(query) : Optional.empty();
    if (batches.isPresent()) {
      return new FeedInput(batches.get(), true, keys);
    }
    // Another query, with the keys as columns, would run its exchanges again.
    RDD<InternalRow> rows = spec.byKey() ? ranked(query, spec, keys) : query.toRdd();
    return new FeedInput(rows, false, keys);
  }

  /** Whether the data ends in batches on GPUs, as far as its plan is known before it runs. */
  static boolean endsOnDevices(Dataset<Row> data) {
    return DeviceRoute.endsOnDevices(query(data));
  }

  private static QueryExecution query(Dataset<Row> data) {
    return ((org.apache.spark.sql.classic.Dataset<Row>) data).queryExecution();
  }

  /** Returns the numbers of columns; none if one of them is not a column of the result. */
  private static List<Integer> columns(QueryExecution query, List<String> names) {
    LogicalPlan plan = query.analyzed();
    Seq<Attribute> output = plan.output();
    List<Integer> found =
        names.stream()
            .flatMap(
                name -> {
                  Option<NamedExpression> column =
                      plan.resolveQuoted(
                          name, query.sparkSession().sessionState().conf().resolver());
                  return IntStream.range(0, output.size())
                      .filter(i -> column.isDefined() && isSame(output.apply(i), column.get()))
                      .limit(1)
                      .boxed();
                })
            .toList();
    return found.size() == names.size() ? found : List.of();
  }

  private static boolean isSame(Attribute column, NamedExpression found) {
    return found instanceof Attribute same && same.exprId().equals(column.exprId());
  }

  /** Spark computes the keys, as columns that the feed does not have. */
  private static RDD<InternalRow> withKeys(Dataset<Row> data, FeedSpec spec, List<String> names) {
    int columns = spec.schema().length();
    List<Column> selected = new ArrayList<>(List.of(functions.col("*")));
    names.forEach(name -> selected.add(data.col(name)));
    QueryExecution query = query(data.select(selected.toArray(Column[]::new)));
    return ranked(query, spec, IntStream.range(columns, columns + names.size()).boxed().toList());
  }

  private static RDD<InternalRow> ranked(QueryExecution query, FeedSpec spec, List<Integer> keys) {
    StructType given = query.analyzed().schema();
    return NarrowRDD.over(
        query.toRdd(), InternalRow.class, all -> FeedRows.ranked(all, spec, given, keys));
  }

  private static Column hash(Dataset<Row> data, List<String> keys) {
    return functions.hash(keys.stream().map(data::col).toArray(Column[]::new));
  }
}
