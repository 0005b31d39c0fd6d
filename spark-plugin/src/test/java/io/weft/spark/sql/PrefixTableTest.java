package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.sql.RangeBounds.PrefixTable;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;

/** A table of prefixes counts as a search without a table does. */
class PrefixTableTest {
  /** Numbers close to each other, of the whole range, and many that are equal. */
  @Property(tries = 300)
  void aTableCountsLowerPrefixes(@ForAll long seed, @ForAll @IntRange(max = 70) int size) {
    SplittableRandom random = new SplittableRandom(seed);
    long[] prefixes = numbers(random, size);
    Arrays.sort(prefixes);
    PrefixTable table = new PrefixTable(prefixes);
    LongStream others = Arrays.stream(numbers(random, 100));
    LongStream near =
        Arrays.stream(prefixes).flatMap(prefix -> LongStream.of(prefix - 1, prefix, prefix + 1));
    LongStream.concat(others, near)
        .forEach(
            number ->
                assertThat(table.lower(number))
                    .isEqualTo(Arrays.stream(prefixes).filter(prefix -> prefix < number).count()));
  }

  private static long[] numbers(SplittableRandom random, int size) {
    long[] extremes = {Long.MIN_VALUE, Long.MIN_VALUE + 1, -1, 0, 1, Long.MAX_VALUE};
    int dropped = random.nextInt(Long.SIZE);
    return LongStream.generate(
            () ->
                random.nextInt(8) == 0
                    ? extremes[random.nextInt(extremes.length)]
                    : random.nextLong() >> dropped)
        .limit(size)
        .toArray();
  }
}
