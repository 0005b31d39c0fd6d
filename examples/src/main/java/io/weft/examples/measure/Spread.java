package io.weft.examples.measure;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;

/**
 * How values of repeated runs lie. The median stands for them; minimum and maximum show the noise.
 *
 * @param values sorted; at least one
 */
public record Spread(List<Double> values) {
  public Spread {
    if (values.isEmpty()) {
      throw new IllegalArgumentException("no runs to take a median of");
    }
    values = values.stream().sorted().toList();
  }

  /** The spread of some values. */
  public static Spread of(double... values) {
    return new Spread(Arrays.stream(values).boxed().toList());
  }

  /** The smallest. */
  @JsonProperty
  public double min() {
    return values.get(0);
  }

  /** The one in the middle, or the mean of the two there. */
  @JsonProperty
  public double median() {
    int half = values.size() / 2;
    return values.size() % 2 == 1
        ? values.get(half)
        : (values.get(half - 1) + values.get(half)) / 2;
  }

  /** The largest. */
  @JsonProperty
  public double max() {
    return values.get(values.size() - 1);
  }

  /**
   * The geometric mean of positive numbers, 1 if there are none.
   *
   * @throws IllegalArgumentException if one is not positive
   */
  public static double geometricMean(Collection<Double> numbers) {
    double logarithms = 0;
    for (double number : numbers) {
      if (!(number > 0)) {
        throw new IllegalArgumentException("no geometric mean with " + number);
      }
      logarithms += Math.log(number);
    }
    return numbers.isEmpty() ? 1 : Math.exp(logarithms / numbers.size());
  }
}
