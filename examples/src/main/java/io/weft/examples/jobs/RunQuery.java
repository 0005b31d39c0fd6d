package io.weft.examples.jobs;

import io.weft.examples.side.SideTask;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Runs a query and brings its result back.
 *
 * @param text the SQL
 */
public record RunQuery(String text) implements SideTask<QueryRun> {
  private static final String BETWEEN_COLUMNS = " | ";

  @Override
  public QueryRun run(SparkSession session) throws Exception {
    JobMeter.Measured<List<Row>> measured =
        JobMeter.measure(session.sparkContext(), () -> session.sql(text).collectAsList());
    return new QueryRun(
        new ArrayList<>(measured.value().stream().map(RunQuery::text).toList()), measured.cost());
  }

  static String text(Row row) {
    List<String> values = new ArrayList<>();
    for (int i = 0; i < row.size(); i++) {
      values.add(value(row.get(i)));
    }
    return String.join(BETWEEN_COLUMNS, values);
  }

  private static String value(Object value) {
    if (value instanceof BigDecimal number) {
      return number.toPlainString();
    }
    if (value instanceof String string) {
      // A string never looks like another type's value, nor like two columns.
      return '"' + string.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }
    return String.valueOf(value);
  }
}
