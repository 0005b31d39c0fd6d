package io.weft.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.LongRange;
import org.apache.spark.util.Utils;
import org.junit.jupiter.api.Test;

class TextsTest {
  @Property(tries = 500)
  void numbersHaveSeparators(
      @ForAll long number, @ForAll @LongRange(min = 0, max = 62) long shift) {
    long smaller = number >> shift;
    assertThat(Texts.number(smaller)).isEqualTo(String.format(Locale.ROOT, "%,d", smaller));
  }

  @Property(tries = 500)
  void bytesLookAsInTheRestOfSparksPages(
      @ForAll @LongRange(min = 0) long bytes, @ForAll @LongRange(min = 0, max = 62) long shift) {
    long fewer = bytes >> shift;
    assertThat(Texts.bytes(fewer)).isEqualTo(Utils.bytesToString(fewer));
  }

  @Test
  void bytesAreRoundedAndChangeTheirUnitAsInSpark() {
    LongStream.range(0, 63)
        .map(bit -> 1L << bit)
        .flatMap(
            power ->
                LongStream.of(
                    power - 1,
                    power,
                    power + 1,
                    power + power / 20,
                    power + power / 20 - 1,
                    -power))
        .forEach(bytes -> assertThat(Texts.bytes(bytes)).isEqualTo(Utils.bytesToString(bytes)));
    assertThat(Texts.bytes(2000)).isEqualTo("2000.0 B");
    assertThat(Texts.bytes(Long.MAX_VALUE)).isEqualTo(Utils.bytesToString(Long.MAX_VALUE));
  }

  @Test
  void onlyTextsThatHtmlWouldReadAreEscaped() {
    assertThat(Texts.escape("<a href=\"x\" id='y'>&amp;</a>"))
        .isEqualTo("&lt;a href=&quot;x&quot; id='y'&gt;&amp;amp;&lt;/a&gt;");
    assertThat(Texts.escape("host-17 → größer …")).isEqualTo("host-17 → größer …");
    assertThat(Texts.escape("")).isEmpty();
    assertThat(Texts.escape(null)).isEmpty();
  }

  @Test
  void numbersAreInNumericOrderBeforeNames() {
    List<String> names =
        new ArrayList<>(Stream.of("b", "10", "9", "driver", "", "2a", "100").toList());
    Collections.shuffle(names, new java.util.Random(17));
    names.sort(Texts.NUMBERS_FIRST);
    assertThat(names).containsExactly("9", "10", "100", "", "2a", "b", "driver");
  }
}
