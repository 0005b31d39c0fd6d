package io.weft.tests.workload;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.junit.jupiter.api.Test;
import scala.jdk.javaapi.CollectionConverters;

class RowTextTest {
  @Test
  void tellsApartWhatEqualityConfuses() {
    assertThat(text(0.0)).isNotEqualTo(text(-0.0));
    assertThat(text(Double.NaN)).isNotEqualTo(text(Double.longBitsToDouble(0x7ff8000000000001L)));
    assertThat(text(1.0f)).isNotEqualTo(text(1.0));
    assertThat(text(1)).isNotEqualTo(text(1L)).isNotEqualTo(text("1"));
    assertThat(text(new BigDecimal("1.0"))).isNotEqualTo(text(new BigDecimal("1.00")));
    assertThat(text("null")).isNotEqualTo(text((Object) null));
    assertThat(text("a\", \"b")).isNotEqualTo(text("a", "b"));
  }

  @Test
  void looksIntoCollections() {
    Object array = CollectionConverters.asScala(List.of(1, 2)).toSeq();
    Object map = CollectionConverters.asScala(Map.of("k", new byte[] {1, -1}));
    assertThat(text(array, map, RowFactory.create(-0.0f)))
        .isEqualTo("{[Integer:1, Integer:2], <\"k\" -> 0x01ff>, {-0.0f:80000000}}");
  }

  private static String text(Object... values) {
    Row row = RowFactory.create(values);
    return RowText.of(row);
  }
}
