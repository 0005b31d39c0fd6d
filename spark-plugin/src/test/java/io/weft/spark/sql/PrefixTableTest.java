package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.sql.RangeBounds.PrefixTable;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.stream.LongStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A table of prefixes counts as a search without a table does. */
class PrefixTableTest {
  private static final long[] EXTREMES = {
    Long.MIN_VALUE, Long.MIN_VALUE + 1, -1, 0, 1, Long.MAX_VALUE - 1, Long.MAX_VALUE
  };

  /** Numbers close to each other, of the whole range, many that are equal, and those of nulls. */
  @Property(tries = 600)
  void aTableCountsLowerPrefixes(
      @ForAll long seed,
      @ForAll @IntRange(max = 70) int size,
      @ForAll boolean withExtremes,
      @ForAll @IntRange(max = Long.SIZE - 1) int dropped) {
    SplittableRandom random = new SplittableRandom(seed);
    long[] prefixes = numbers(random, size, dropped);
    if (withExtremes) {
      for (int i = 0; i < size; i += 1 + random.nextInt(8)) {
        prefixes[i] = EXTREMES[random.nextInt(EXTREMES.length)];
      }
    }
    long[] others = numbers(random, 100, random.nextInt(Long.SIZE));
    check(prefixes, EXTREMES[random.nextInt(EXTREMES.length)], others);
    check(prefixes, size == 0 ? 0 : prefixes[random.nextInt(size)], others);
  }

  /** More prefixes than the table has intervals for, close to each other and spread. */
  @ParameterizedTest
  @ValueSource(ints = {0, 51, 63})
  void manyPrefixes(int dropped) {
    SplittableRandom random = new SplittableRandom(dropped);
    long[] prefixes = numbers(random, 5000, dropped);
    check(prefixes, Long.MIN_VALUE, numbers(random, 1000, dropped));
    Arrays.fill(prefixes, 0, 300, Long.MIN_VALUE);
    check(prefixes, Long.MIN_VALUE, numbers(random, 1000, dropped));
    check(prefixes, Long.MAX_VALUE, numbers(random, 1000, dropped));
  }

  /** Compares counts for the prefixes, their neighbours, extremes and others. */
  private static void check(long[] unordered, long ofNull, long[] others) {
    long[] prefixes = unordered.clone();
    Arrays.sort(prefixes);
    PrefixTable table = new PrefixTable(prefixes, ofNull);
    LongStream near =
        Arrays.stream(prefixes)
            .distinct()
            .flatMap(prefix -> LongStream.of(prefix - 1, prefix, prefix + 1));
    LongStream far = LongStream.concat(Arrays.stream(others), Arrays.stream(EXTREMES));
    LongStream.concat(near, far)
        .forEach(number -> assertThat(table.lower(number)).isEqualTo(naive(prefixes, number)));
  }

  private static int naive(long[] prefixes, long number) {
    int count = 0;
    for (long prefix : prefixes) {
      count += prefix < number ? 1 : 0;
    }
    return count;
  }

  private static long[] numbers(SplittableRandom random, int size, int dropped) {
    return LongStream.generate(() -> random.nextLong() >> dropped).limit(size).toArray();
  }
}
