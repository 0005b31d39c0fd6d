package io.weft.examples.measure;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;

/**
 * The distribution of the values of repeated runs. The median represents them; minimum and maximum
 * show the noise.
 *
 * @param values sorted; at least one
 */
public record Spread(List<Double> values) {
  public Spread {
    if (values.isEmpty()) {
      throw new IllegalArgumentException("a median needs at least one run");
    }
    values = values.stream().sorted().toList();
  }

  /** Returns the spread of these values. */
  public static Spread of(double... values) {
    return new Spread(Arrays.stream(values).boxed().toList());
  }

  /** The smallest value. */
  @JsonProperty
  public double min() {
    return values.get(0);
  }

  /** The middle value, or the mean of the two middle values. */
  @JsonProperty
  public double median() {
    int half = values.size() / 2;
    return values.size() % 2 == 1
        ? values.get(half)
        : (values.get(half - 1) + values.get(half)) / 2;
  }

  /** The largest value. */
  @JsonProperty
  public double max() {
    return values.get(values.size() - 1);
  }

  /**
   * Returns the geometric mean of positive numbers; 1 for an empty collection.
   *
   * @throws IllegalArgumentException if a number is not positive
   */
  public static double geometricMean(Collection<Double> numbers) {
    double logarithms = 0;
    for (double number : numbers) {
      if (!(number > 0)) {
        throw new IllegalArgumentException(
            "a geometric mean needs positive numbers, not " + number);
      }
      logarithms += Math.log(number);
    }
    return numbers.isEmpty() ? 1 : Math.exp(logarithms / numbers.size());
  }
}
