package io.weft.collectives.host;

import static io.weft.collectives.contract.CommunicatorContract.buffer;
import static io.weft.collectives.contract.CommunicatorContract.filled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.Algorithm;
import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.OperationKind;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.contract.RandomStep;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.function.IntUnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Ranks are dealt out to hosts in turn, so that the parts of a host are not adjacent. */
class InterleavedHostsTest {
  @TempDir Path folder;

  private RankGang gang(int nranks, Hosts.Placement placement) {
    return RankGang.open(Hosts.factory(folder, placement), nranks, Duration.ofSeconds(60));
  }

  @ParameterizedTest
  @CsvSource({"3, 2", "4, 2", "5, 3", "8, 3"})
  void operationsInARandomOrder(int nranks, int hosts) {
    try (RankGang gang = gang(nranks, (rank, of) -> rank % hosts)) {
      gang.run(
          communicator -> {
            assertThat(communicator.topology().hosts()).hasSize(hosts);
            Random random = new Random(hosts);
            for (int step = 0; step < 80; step++) {
              RandomStep.run(communicator, random, "step " + step);
            }
            RaggedContract.exchange(communicator, DataType.INT32, 2, 3, RaggedContract.MIXED);
          });
    }
  }

  /** Buffers of several pieces, of which the last is shorter. */
  @Test
  void largeOperations() {
    long count = 600_001;
    try (RankGang gang = gang(5, (rank, of) -> rank % 3)) {
      gang.run(
          communicator -> {
            TypedBuffer data = filled(communicator, DataType.INT64, count);
            communicator.broadcast(data, 3);
            Values.check("broadcast", data, i -> Values.of(3, i));
            TypedBuffer all = buffer(DataType.INT8, 5 * count);
            communicator.allGather(filled(communicator, DataType.INT8, count), all);
            Values.check("all-gather", all, i -> Values.of((int) (i / count), i % count));
            TypedBuffer part = buffer(DataType.FLOAT16, count);
            communicator.reduceScatter(
                filled(communicator, DataType.FLOAT16, 5 * count), part, ReduceOp.SUM);
            long first = communicator.rank() * count;
            Values.check(
                "reduce-scatter",
                part,
                i -> Values.reduced(DataType.FLOAT16, ReduceOp.SUM, 5, first + i));
          });
    }
  }

  @Test
  void networkCanBeForbidden() {
    CommunicatorFactory apart =
        (bootstrap, options) ->
            new HostCommunicators(
                    HostOptions.defaults()
                        .withFolder(folder.resolve("host"))
                        .withHostIdentity("host-" + bootstrap.rank())
                        .withNetwork(false))
                .create(bootstrap, options);
    assertThatThrownBy(() -> RankGang.open(apart, 2, Duration.ofSeconds(60)))
        .hasMessageContaining("the network is disabled");
  }

  @Test
  void closingEndsTheAgents() {
    String agents;
    try (RankGang gang = gang(4, (rank, of) -> rank % 2)) {
      agents = "weft-agent-" + gang.rank(0).id() + "-";
      assertThat(threads(agents)).isEqualTo(4);
    }
    assertThat(threads(agents)).isZero();
  }

  private static long threads(String prefix) {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith(prefix))
        .count();
  }

  /** The metrics show the chosen algorithm. */
  @Test
  void algorithmFollowsTheTopology() {
    assertThat(algorithm(rank -> 0)).isEqualTo(Algorithm.ONE_SHOT);
    assertThat(algorithm(rank -> rank)).isEqualTo(Algorithm.RECURSIVE_DOUBLING);
    assertThat(algorithm(rank -> rank % 2)).isEqualTo(Algorithm.HIERARCHICAL);
  }

  private Algorithm algorithm(IntUnaryOperator host) {
    try (RankGang gang = gang(3, (rank, of) -> host.applyAsInt(rank))) {
      List<List<CollectiveMetrics.Line>> lines =
          gang.ask(
              communicator -> {
                communicator.allReduce(filled(communicator, DataType.INT32, 10), ReduceOp.MAX);
                return communicator.metrics().lines();
              });
      assertThat(lines.get(0)).hasSize(1);
      assertThat(lines.get(0).get(0).kind()).isEqualTo(OperationKind.ALL_REDUCE);
      return lines.get(0).get(0).algorithm();
    }
  }
}
