package io.weft.examples.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.sql.Date;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.junit.jupiter.api.Test;

class RunQueryTest {
  @Test
  void rowsKeepEveryDigit() {
    Row row =
        RowFactory.create(
            1L,
            new BigDecimal("100000000000000000000.10"),
            0.1,
            "x",
            null,
            Date.valueOf("1995-03-05"));
    assertThat(RunQuery.text(row))
        .isEqualTo("1 | 100000000000000000000.10 | 0.1 | \"x\" | null | 1995-03-05");
  }

  @Test
  void stringsDifferFromOtherValues() {
    assertThat(RunQuery.text(RowFactory.create("null")))
        .isNotEqualTo(RunQuery.text(RowFactory.create((Object) null)));
    assertThat(RunQuery.text(RowFactory.create("a\" | \"b")))
        .isNotEqualTo(RunQuery.text(RowFactory.create("a", "b")));
  }
}
