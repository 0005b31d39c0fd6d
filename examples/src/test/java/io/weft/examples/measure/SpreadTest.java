package io.weft.examples.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.DoubleRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;

class SpreadTest {
  @Test
  void theMedianOfAnEvenCountIsTheMeanOfTheMiddle() {
    Spread spread = Spread.of(9, 1, 2, 4);
    assertThat(spread.min()).isEqualTo(1);
    assertThat(spread.median()).isEqualTo(3);
    assertThat(spread.max()).isEqualTo(9);
  }

  @Property
  void theMedianHasAsManyBelowAsAbove(
      @ForAll @Size(min = 1, max = 30) List<@DoubleRange(min = -1e6, max = 1e6) Double> values) {
    double median = new Spread(values).median();
    long below = values.stream().filter(value -> value < median).count();
    long above = values.stream().filter(value -> value > median).count();
    assertThat(below).isLessThanOrEqualTo(values.size() / 2);
    assertThat(above).isLessThanOrEqualTo(values.size() / 2);
  }

  @Test
  void aMedianNeedsAValue() {
    assertThatIllegalArgumentException().isThrownBy(() -> new Spread(List.of()));
  }

  @Test
  void theGeometricMeanIsTheRootOfTheProduct() {
    assertThat(Spread.geometricMean(List.of(0.5, 2.0, 8.0))).isCloseTo(2, within(1e-12));
    assertThat(Spread.geometricMean(List.of())).isEqualTo(1);
    assertThatIllegalArgumentException().isThrownBy(() -> Spread.geometricMean(List.of(1.0, 0.0)));
  }
}
