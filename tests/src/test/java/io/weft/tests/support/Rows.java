package io.weft.tests.support;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Compares two results row by row and reports their differences in a readable message. */
public final class Rows {
  private static final int SHOWN = 5;

  private Rows() {}

  /** Fails unless both hold the same rows the same number of times in the same order. */
  public static void assertSame(String what, List<String> expected, List<String> actual) {
    difference(expected, actual)
        .ifPresent(
            difference -> {
              throw new AssertionError(
                  what + ": the rows are not those of Spark's shuffle\n" + difference);
            });
  }

  /** The differences, as a readable text. */
  static Optional<String> difference(List<String> expected, List<String> actual) {
    if (expected.equals(actual)) {
      return Optional.empty();
    }
    StringBuilder out = new StringBuilder();
    out.append(expected.size()).append(" rows expected, ").append(actual.size()).append(" found\n");
    boolean listed = list(out, "missing", subtract(expected, actual));
    listed |= list(out, "not expected", subtract(actual, expected));
    if (!listed) {
      out.append("  the same rows in another order\n");
    }
    return Optional.of(out.toString());
  }

  private static Map<String, Integer> subtract(List<String> from, List<String> other) {
    Map<String, Integer> counts = new HashMap<>();
    from.forEach(row -> counts.merge(row, 1, Integer::sum));
    other.forEach(
        row -> counts.computeIfPresent(row, (key, count) -> count > 1 ? count - 1 : null));
    return counts;
  }

  private static boolean list(StringBuilder out, String title, Map<String, Integer> rows) {
    rows.entrySet().stream()
        .sorted(Map.Entry.comparingByKey())
        .limit(SHOWN)
        .forEach(
            row ->
                out.append("  ")
                    .append(title)
                    .append(" (")
                    .append(row.getValue())
                    .append(" times): ")
                    .append(row.getKey())
                    .append('\n'));
    if (rows.size() > SHOWN) {
      out.append("  and ").append(rows.size() - SHOWN).append(" more ").append(title).append('\n');
    }
    return !rows.isEmpty();
  }
}
