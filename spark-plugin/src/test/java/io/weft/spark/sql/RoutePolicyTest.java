package io.weft.spark.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.config.Route;
import io.weft.spark.sql.WeftExchangeRule.RoutePolicy;
import io.weft.spark.sql.WeftExchangeRule.RoutePolicy.RouteChoice;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition$;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.exchange.ENSURE_REQUIREMENTS$;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.ObjectType;
import org.junit.jupiter.api.Test;
import scala.Option;

class RoutePolicyTest {
  @Test
  void anUnsupportedTypeIsNamed() {
    RouteChoice choice =
        RoutePolicy.choose(
            exchange(SinglePartition$.MODULE$, new ObjectType(Thread.class)), Route.COLUMNS);
    assertThat(choice.columns()).isFalse();
    assertThat(choice.shown()).isTrue();
    assertThat(choice.reason()).contains("column c").containsIgnoringCase("thread");
  }

  @Test
  void anUnknownPartitioningIsNamed() {
    RouteChoice choice =
        RoutePolicy.choose(exchange(new UnknownPartitioning(3), DataTypes.LongType), Route.COLUMNS);
    assertThat(choice).isEqualTo(RouteChoice.refused("partitioning UnknownPartitioning"));
  }

  @Test
  void rowsStayRowsUnlessForced() {
    Attribute column = column(DataTypes.LongType);
    Partitioning hash = new HashPartitioning(ScalaInterop.seq(column), 4);
    assertThat(RoutePolicy.choose(exchange(hash, DataTypes.LongType), Route.AUTO).columns())
        .isFalse();
    assertThat(RoutePolicy.choose(exchange(hash, DataTypes.LongType), Route.ROWS).columns())
        .isFalse();
    assertThat(RoutePolicy.choose(exchange(hash, DataTypes.LongType), Route.COLUMNS).columns())
        .isTrue();
  }

  @Test
  void aNetworkIsSeenByTheHostsOfExecutors() {
    assertThat(DirectStage.isOneHost(List.of("10.0.0.1:7", "10.0.0.1:8"))).isTrue();
    assertThat(DirectStage.isOneHost(List.of("[::1]:7", "[::1]:8"))).isTrue();
    assertThat(DirectStage.isOneHost(List.of("10.0.0.1", "10.0.0.1:8"))).isTrue();
    assertThat(DirectStage.isOneHost(List.of("10.0.0.1:7", "10.0.0.2:7"))).isFalse();
    assertThat(DirectStage.isOneHost(List.of())).isFalse();
  }

  private static ShuffleExchangeExec exchange(Partitioning partitioning, DataType type) {
    LocalTableScanExec rows =
        new LocalTableScanExec(ScalaInterop.seq(column(type)), ScalaInterop.seq(), Option.empty());
    return new ShuffleExchangeExec(
        partitioning, rows, ENSURE_REQUIREMENTS$.MODULE$, Option.empty());
  }

  private static Attribute column(DataType type) {
    return new AttributeReference(
        "c", type, true, Metadata.empty(), NamedExpression.newExprId(), ScalaInterop.seq());
  }
}
