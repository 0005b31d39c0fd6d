package io.weft.examples.terminal;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class UnitsTest {
  @ParameterizedTest
  @CsvSource({"0.0412, 0.041", "0.5, 0.500", "3.414, 3.41", "12.34, 12.3", "-0.2, -0.200"})
  void secondsHaveAboutThreeDigits(double seconds, String text) {
    assertThat(Units.seconds(seconds)).isEqualTo(text);
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0 B",
    "999, 999 B",
    "1000, 1.00 kB",
    "999499, 999 kB",
    "999500, 1.00 MB",
    "12345678, 12.3 MB",
    "720000000, 720 MB",
    "-4000, -4.00 kB",
    "9223372036854775807, 9.22 EB"
  })
  void bytesArePowersOfAThousand(long bytes, String text) {
    assertThat(Units.bytes(bytes)).isEqualTo(text);
  }

  @ParameterizedTest
  @CsvSource({
    "1.344, 1.34×",
    "9.996, 10.0×",
    "0.5, 0.50×",
    "0, –",
    "-2, –",
    "NaN, –",
    "Infinity, –"
  })
  void invalidFactorsAreDashes(double factor, String text) {
    assertThat(Units.factor(factor)).isEqualTo(text);
  }

  @Test
  void clockShowsMinutesBeyondAnHour() {
    assertThat(Units.clock(Duration.ofSeconds(65))).isEqualTo("1:05");
    assertThat(Units.clock(Duration.ofSeconds(3_725))).isEqualTo("62:05");
  }
}
