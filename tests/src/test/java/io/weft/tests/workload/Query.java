package io.weft.tests.workload;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * One query over {@link Tables}, with its session settings.
 *
 * @param name what the query covers, unique among all
 * @param sql its text
 * @param ordered whether the order of the rows is part of the answer
 * @param settings session settings while it runs
 */
public record Query(String name, String sql, boolean ordered, Map<String, String> settings) {
  /** A query whose rows may come in any order. */
  public static Query of(String name, String sql) {
    return new Query(name, sql, false, Map.of());
  }

  /** A query that sorts its rows itself, all of them, without ties. */
  public static Query ordered(String name, String sql) {
    return new Query(name, sql, true, Map.of());
  }

  /** The same query with one more session setting. */
  public Query with(String key, String value) {
    Map<String, String> more = new LinkedHashMap<>(settings);
    more.put(key, value);
    return new Query(name, sql, ordered, Map.copyOf(more));
  }

  /** Runs the query; returns its rows as text, sorted unless the query orders them. */
  public List<String> run(SparkSession session) {
    Map<String, Optional<String>> before = new LinkedHashMap<>();
    for (String key : settings.keySet()) {
      before.put(key, Optional.ofNullable(session.conf().get(key, null)));
    }
    settings.forEach((key, value) -> session.conf().set(key, value));
    try {
      return rows(session.sql(sql));
    } finally {
      before.forEach((key, value) -> restore(session, key, value));
    }
  }

  private List<String> rows(Dataset<Row> data) {
    List<String> rows = new ArrayList<>(RowText.collect(data));
    if (!ordered) {
      rows.sort(null);
    }
    return rows;
  }

  private static void restore(SparkSession session, String key, Optional<String> value) {
    if (value.isPresent()) {
      session.conf().set(key, value.get());
    } else {
      session.conf().unset(key);
    }
  }

  @Override
  public String toString() {
    return name;
  }
}
