package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.io.Serializable;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Runs a query and returns its result.
 *
 * @param text the SQL
 */
public record RunQuery(String text) implements SideTask<RunQuery.Result> {
  private static final String BETWEEN_COLUMNS = " | ";

  @Override
  public Result run(SparkSession session) throws Exception {
    JobCost.Meter.Measured<List<Row>> measured =
        JobCost.Meter.measure(session.sparkContext(), () -> session.sql(text).collectAsList());
    return new Result(
        new ArrayList<>(measured.value().stream().map(RunQuery::text).toList()), measured.cost());
  }

  static String text(Row row) {
    List<String> values = new ArrayList<>();
    for (int i = 0; i < row.size(); i++) {
      values.add(value(row.get(i)));
    }
    return String.join(BETWEEN_COLUMNS, values);
  }

  static String value(Object value) {
    if (value instanceof BigDecimal number) {
      return number.toPlainString();
    }
    if (value instanceof String string) {
      // Quotes distinguish a string from values of other types and from two columns.
      return '"' + string.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
    return String.valueOf(value);
  }

  /**
   * The result and the cost of a query.
   *
   * @param rows in their order, each as text with every digit
   */
  public record Result(List<String> rows, JobCost cost) implements Serializable {}

  /**
   * Runs a query and returns its cost only.
   *
   * @param text the SQL
   */
  public record CostOnly(String text) implements SideTask<JobCost> {
    @Override
    public JobCost run(SparkSession session) throws Exception {
      return new RunQuery(text).run(session).cost();
    }
  }
}
