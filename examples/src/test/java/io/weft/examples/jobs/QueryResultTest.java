package io.weft.examples.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class QueryResultTest {
  private static SparkSession session;

  @BeforeAll
  static void start() {
    session =
        SparkSession.builder()
            .master("local[1]")
            .config("spark.driver.host", "localhost")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .getOrCreate();
  }

  @AfterAll
  static void stop() {
    session.stop();
  }

  private static QueryResult.Allowed allowed(String text) {
    return new QueryResult.EveryAllowed(text).run(session);
  }

  private static ResultRows rows(Object... values) {
    List<Row> rows = new ArrayList<>();
    for (Object value : values) {
      rows.add(RowFactory.create(value));
    }
    return ResultRows.of(rows);
  }

  /** With the sort key in the output, hidden, computed, and below a common table expression. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "select v from (select * from values (1, 7), (2, 7), (3, 7), (4, 8) t(v, k)) order by k"
            + " limit 2",
        "select v from values (1, 7), (2, 7), (3, 7), (4, 8) t(v, k) order by k + 1 limit 2",
        "with c as (select * from values (1, 7), (2, 7), (3, 7), (4, 8) t(v, k))"
            + " select c.v from c join c d on c.v = d.v order by c.k limit 2"
      })
  void tiesAreInAnyOrderAndLimitChoosesAny(String query) {
    QueryResult.Allowed allowed = allowed(query);
    assertThat(allowed.objection(rows(1, 2))).isEmpty();
    assertThat(allowed.objection(rows(3, 1))).isEmpty();
    assertThat(allowed.objection(rows(1, 4)).orElseThrow()).contains("wrong place: 4");
    assertThat(allowed.objection(rows(1, 1)).orElseThrow()).contains("twice");
    assertThat(allowed.objection(rows(1)).orElseThrow()).contains("1 rows instead of 2");
    assertThat(allowed.objection(new QueryResult(query).run(session))).isEmpty();
  }

  @Test
  void theOrderOfDifferentKeysCounts() {
    QueryResult.Allowed allowed = allowed("select v from values (2), (1), (3) t(v) order by v");
    assertThat(allowed.objection(rows(1, 2, 3))).isEmpty();
    assertThat(allowed.objection(rows(1, 3, 2))).isPresent();
    assertThat(allowed.objection(rows(1, 2, 3, 3))).isPresent();
  }

  @Test
  void withoutOrderEveryOrderIsAllowed() {
    assertThat(allowed("select v from values (2), (1) t(v)").objection(rows(1, 2))).isEmpty();
    QueryResult.Allowed limited = allowed("select v from values (2), (1), (3) t(v) limit 2");
    assertThat(limited.objection(rows(3, 1))).isEmpty();
    assertThat(limited.objection(rows(3, 4))).isPresent();
    assertThat(allowed("select 1 where false").objection(rows())).isEmpty();
  }

  @Test
  void onlyFloatingPointNumbersHaveATolerance() {
    assertThat(rows(0.1 + 0.2, "x").sameAs(rows(0.3, "x"))).isTrue();
    assertThat(rows(0.3).sameAs(rows(0.300001))).isFalse();
    assertThat(rows(0.3).sameAs(rows("0.3"))).isFalse();
    assertThat(rows(Double.NaN).sameAs(rows(Double.NaN))).isTrue();
    assertThat(rows(Double.NaN).sameAs(rows(1.0))).isFalse();
    assertThat(rows(1, 2).sameAs(rows(2, 1))).isFalse();
    assertThat(rows(1.0, 1.0, 2.0).surplusOver(rows(2.0, 1.0))).isPresent();
    assertThat(rows(2.0, 1.0).surplusOver(rows(1.0, 1.0, 2.0))).isEmpty();
    List<Object> nulls = Collections.singletonList(null);
    assertThat(rows(nulls.toArray()).sameAs(rows(0.0))).isFalse();
  }

  @Test
  void aTaskThatIsTooSlowIsCancelledAndTheNextOneRuns() throws Exception {
    QueryResult slow =
        new QueryResult("select count(*) from range(100000000000) where sin(id) > 2");
    assertThatThrownBy(() -> new Limited<>(slow, 1).run(session))
        .isInstanceOf(TimeoutException.class)
        .hasMessage("cancelled, because it did not end within 1 s");
    assertThat(new Limited<>(new QueryResult("select 1"), 60).run(session).size()).isEqualTo(1);
  }
}
