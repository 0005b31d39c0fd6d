package io.weft.examples.tpch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkSqlParser;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class TpchQueryTest {
  @ParameterizedTest
  @EnumSource
  void sparkParsesEveryText(TpchQuery query) {
    LogicalPlan plan = new SparkSqlParser().parsePlan(query.text());
    assertThat(plan.resolved()).isFalse();
    assertThat(query.name()).isEqualTo("Q" + query.number());
  }

  @ParameterizedTest
  @EnumSource
  void aTotalOrderNeedsOrderBy(TpchQuery query) {
    boolean single = query == TpchQuery.Q17;
    if (query.totalOrder() && !single) {
      assertThat(query.text()).contains("ORDER BY");
    }
  }

  @Test
  void anUnknownNumberIsAnErrorThatListsTheNumbers() {
    assertThat(TpchQuery.of(21)).isEqualTo(TpchQuery.Q21);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> TpchQuery.of(6))
        .withMessageContaining("no query 6")
        .withMessageContaining("21");
  }
}
