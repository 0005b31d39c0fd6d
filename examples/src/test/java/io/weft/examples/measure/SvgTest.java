package io.weft.examples.measure;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class SvgTest {
  @Test
  void textIsEscaped() {
    assertThat(Svg.escaped("a<b & \"c\">")).isEqualTo("a&lt;b &amp; &quot;c&quot;&gt;");
  }
}
