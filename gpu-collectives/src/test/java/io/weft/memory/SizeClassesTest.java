package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.ExtentLedger.Granules;
import io.weft.memory.Tier.FreeBlocks.SizeClasses;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

class SizeClassesTest {
  private static final int MOST = (int) (Granules.MAX_BYTES / Granules.BYTES);

  @Property
  void classesRiseWithTheLength(@ForAll @IntRange(min = 1, max = MOST - 1) int granules) {
    assertThat(SizeClasses.of(granules + 1) - SizeClasses.of(granules)).isBetween(0, 1);
  }

  @Property
  void lengthsOfOneClassAreAlike(
      @ForAll @IntRange(min = 1, max = MOST) int one,
      @ForAll @IntRange(min = 1, max = MOST) int other) {
    if (SizeClasses.of(one) == SizeClasses.of(other)) {
      assertThat(Math.abs(one - other)).isLessThan(Math.max(1, Math.min(one, other) / 32 + 1));
    }
  }

  @Example
  void smallLengthsHaveAClassOfTheirOwn() {
    for (int granules = 1; granules < 64; granules++) {
      assertThat(SizeClasses.of(granules)).isEqualTo(granules);
    }
  }

  @Example
  void theLongestBlockHasTheLastClass() {
    assertThat(SizeClasses.of(MOST)).isEqualTo(SizeClasses.COUNT - 1);
  }
}
