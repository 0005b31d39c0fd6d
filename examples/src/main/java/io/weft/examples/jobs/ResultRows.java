package io.weft.examples.jobs;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.Row;

/**
 * The rows of a result, for a comparison. Floating point numbers may differ by a part in a billion,
 * because sums depend on the order of their rows; other values may not differ. Immutable.
 *
 * @param rows in their order
 */
public record ResultRows(List<ResultRow> rows) implements Serializable {
  /** The relative difference of floating point numbers that count as equal. */
  public static final double TOLERANCE = 1e-9;

  private static final Comparator<ResultRow> BY_NUMBERS =
      (a, b) -> Arrays.compare(a.array(), b.array());

  public ResultRows {
    rows = new ArrayList<>(rows);
  }

  static ResultRows of(Iterable<Row> rows) {
    List<ResultRow> converted = new ArrayList<>();
    rows.forEach(row -> converted.add(ResultRow.of(row, 0, row.size())));
    return new ResultRows(converted);
  }

  /** The number of rows. */
  public int size() {
    return rows.size();
  }

  /** Whether both have equal rows in the same order. */
  public boolean sameAs(ResultRows other) {
    if (size() != other.size()) {
      return false;
    }
    for (int i = 0; i < size(); i++) {
      if (!rows.get(i).matches(other.rows.get(i))) {
        return false;
      }
    }
    return true;
  }

  /** Returns the rows from one position up to another, which may be beyond the end. */
  public ResultRows part(int from, int to) {
    int size = size();
    return new ResultRows(rows.subList(Math.min(from, size), Math.min(to, size)));
  }

  /** Returns a row that occurs here more often than in others, in any order. */
  public Optional<ResultRow> surplusOver(ResultRows others) {
    Map<String, List<ResultRow>> available = byText(others.rows);
    for (Map.Entry<String, List<ResultRow>> mine : byText(rows).entrySet()) {
      Iterator<ResultRow> left = available.getOrDefault(mine.getKey(), List.of()).iterator();
      for (ResultRow row : mine.getValue()) {
        if (!advance(left, row)) {
          return Optional.of(row);
        }
      }
    }
    return Optional.empty();
  }

  /** Takes rows up to one that matches; whether there is one. */
  private static boolean advance(Iterator<ResultRow> left, ResultRow row) {
    while (left.hasNext()) {
      if (left.next().matches(row)) {
        return true;
      }
    }
    return false;
  }

  private static Map<String, List<ResultRow>> byText(List<ResultRow> rows) {
    Map<String, List<ResultRow>> groups = new HashMap<>();
    rows.forEach(row -> groups.computeIfAbsent(row.text(), text -> new ArrayList<>()).add(row));
    groups.values().forEach(group -> group.sort(BY_NUMBERS));
    return groups;
  }

  /**
   * A row.
   *
   * @param text of all values that have to be equal, with a mark in place of a floating point
   *     number
   * @param numbers the finite floating point numbers, in their order
   */
  public record ResultRow(String text, List<Double> numbers) implements Serializable {
    public ResultRow {
      numbers = new ArrayList<>(numbers);
    }

    /** Converts the columns of a row from one position up to another. */
    static ResultRow of(Row row, int from, int to) {
      StringBuilder text = new StringBuilder();
      List<Double> numbers = new ArrayList<>();
      for (int i = from; i < to; i++) {
        Object value = row.get(i);
        text.append(i == from ? "" : " | ");
        if ((value instanceof Double || value instanceof Float)
            && Double.isFinite(((Number) value).doubleValue())) {
          numbers.add(((Number) value).doubleValue());
          text.append('~');
        } else {
          text.append(RunQuery.value(value));
        }
      }
      return new ResultRow(text.toString(), numbers);
    }

    private double[] array() {
      return numbers.stream().mapToDouble(Double::doubleValue).toArray();
    }

    /** Whether both have equal values, floating point numbers within the tolerance. */
    boolean matches(ResultRow other) {
      if (!text.equals(other.text)) {
        return false;
      }
      for (int i = 0; i < numbers.size(); i++) {
        double mine = numbers.get(i);
        double others = other.numbers.get(i);
        if (Math.abs(mine - others) > Math.max(Math.abs(mine), Math.abs(others)) * TOLERANCE) {
          return false;
        }
      }
      return true;
    }

    @Override
    public String toString() {
      return numbers.isEmpty() ? text : text + " with " + numbers;
    }
  }
}
