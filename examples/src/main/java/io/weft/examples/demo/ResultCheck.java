package io.weft.examples.demo;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Compares results, to the last digit. */
final class ResultCheck {
  private ResultCheck() {}

  /**
   * What is different, if anything.
   *
   * @param ordered whether the order of the rows counts; else each row has to be there as often
   */
  static Optional<String> difference(List<String> expected, List<String> actual, boolean ordered) {
    if (expected.size() != actual.size()) {
      return Optional.of(expected.size() + " rows under Spark, " + actual.size() + " under Weft");
    }
    return ordered ? inOrder(expected, actual) : asBag(expected, actual);
  }

  private static Optional<String> inOrder(List<String> expected, List<String> actual) {
    for (int i = 0; i < expected.size(); i++) {
      if (!expected.get(i).equals(actual.get(i))) {
        return Optional.of(
            "row "
                + (i + 1)
                + " is "
                + expected.get(i)
                + " under Spark and "
                + actual.get(i)
                + " under Weft");
      }
    }
    return Optional.empty();
  }

  private static Optional<String> asBag(List<String> expected, List<String> actual) {
    Map<String, Integer> counts = new HashMap<>();
    expected.forEach(row -> counts.merge(row, 1, Integer::sum));
    for (String row : actual) {
      if (counts.merge(row, -1, Integer::sum) < 0) {
        return Optional.of("Weft has a row too many: " + row);
      }
    }
    return Optional.empty();
  }
}
