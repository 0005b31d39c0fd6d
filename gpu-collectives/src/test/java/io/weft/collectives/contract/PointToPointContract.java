package io.weft.collectives.contract;

import static io.weft.collectives.contract.CommunicatorContract.buffer;
import static io.weft.collectives.contract.CommunicatorContract.filled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.AllReduce;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation;
import io.weft.collectives.Receive;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests sends, receives and groups. */
public interface PointToPointContract extends CommunicatorContract {
  String SEVERAL = "io.weft.collectives.contract.CommunicatorContract#severalRanks";

  @ParameterizedTest
  @MethodSource(SEVERAL)
  default void neighboursExchangeInAGroup(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            int rank = communicator.rank();
            int right = (rank + 1) % nranks;
            int left = (rank + nranks - 1) % nranks;
            for (long count : new long[] {0, 1, 1000, 700_001}) {
              TypedBuffer in = buffer(DataType.INT16, count);
              communicator.runGroup(
                  List.of(
                      new Send(filled(communicator, DataType.INT16, count), right),
                      new Receive(in, left)));
              Values.check("from the left", in, i -> Values.of(left, i));
            }
          });
    }
  }

  @ParameterizedTest
  @MethodSource(SEVERAL)
  default void allPairsExchangeInAGroup(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            List<Operation> group = new ArrayList<>();
            List<TypedBuffer> inboxes = new ArrayList<>();
            for (int peer = 0; peer < nranks; peer++) {
              TypedBuffer in = buffer(DataType.FLOAT32, 50_000 + peer);
              inboxes.add(in);
              long sent = 50_000 + communicator.rank();
              group.add(new Send(filled(communicator, DataType.FLOAT32, sent), peer));
              group.add(new Receive(in, peer));
            }
            communicator.runGroup(group);
            for (int peer = 0; peer < nranks; peer++) {
              int from = peer;
              Values.check("from " + peer, inboxes.get(peer), i -> Values.of(from, i));
            }
          });
    }
  }

  @Test
  default void messagesOfAPairKeepTheirOrder() {
    try (RankGang gang = gang(2)) {
      gang.run(
          communicator -> {
            for (int i = 0; i < 500; i++) {
              TypedBuffer buffer = buffer(DataType.INT32, 1 + i * 7 % 3000);
              if (communicator.rank() == 0) {
                int number = i;
                Values.fill(buffer, index -> number);
                communicator.send(buffer, 1);
              } else {
                communicator.receive(buffer, 0);
                int number = i;
                Values.check("message " + i, buffer, index -> number);
              }
            }
          });
    }
  }

  @Test
  default void pingPong() {
    try (RankGang gang = gang(2)) {
      gang.run(
          communicator -> {
            TypedBuffer buffer = filled(communicator, DataType.INT64, 3);
            int peer = 1 - communicator.rank();
            for (int i = 0; i < 2000; i++) {
              if ((i + communicator.rank()) % 2 == 0) {
                communicator.send(buffer, peer);
              } else {
                communicator.receive(buffer, peer);
              }
            }
            Values.check("after many rounds", buffer, i -> Values.of(0, i));
          });
    }
  }

  @ParameterizedTest
  @MethodSource(SEVERAL)
  default void groupMixesCollectivesAndPairs(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            int rank = communicator.rank();
            TypedBuffer sum = filled(communicator, DataType.FLOAT64, 30_000);
            TypedBuffer in = buffer(DataType.INT8, 400_000);
            TypedBuffer out = filled(communicator, DataType.INT8, 400_000);
            Operation reduce = new AllReduce(sum, sum, ReduceOp.SUM);
            Operation send = new Send(out, (rank + 1) % nranks);
            Operation receive = new Receive(in, (rank + nranks - 1) % nranks);
            communicator.runGroup(
                rank % 2 == 0 ? List.of(send, reduce, receive) : List.of(receive, reduce, send));
            Values.check(
                "sum", sum, i -> Values.reduced(DataType.FLOAT64, ReduceOp.SUM, nranks, i));
            Values.check("in", in, i -> Values.of((rank + nranks - 1) % nranks, i));
          });
    }
  }

  /** A blocking send on one rank matches a receive that is in a group with a collective. */
  @Test
  default void groupedReceiveProgressesDuringTheCollective() {
    try (RankGang gang = gang(2)) {
      gang.run(
          communicator -> {
            TypedBuffer sum = filled(communicator, DataType.INT32, 10);
            TypedBuffer large = filled(communicator, DataType.INT8, 3_000_000);
            if (communicator.rank() == 0) {
              communicator.send(large, 1);
              communicator.allReduce(sum, ReduceOp.SUM);
            } else {
              communicator.runGroup(
                  List.of(new AllReduce(sum, sum, ReduceOp.SUM), new Receive(large, 0)));
              Values.check("large", large, i -> Values.of(0, i));
            }
            Values.check("sum", sum, i -> Values.reduced(DataType.INT32, ReduceOp.SUM, 2, i));
          });
    }
  }

  @Test
  default void differentLengthsAreAnError() {
    assertMismatch(DataType.INT32, 10, DataType.INT32, 11);
    assertMismatch(DataType.INT32, 10, DataType.FLOAT32, 10);
  }

  private void assertMismatch(DataType sent, long sentCount, DataType taken, long takenCount) {
    try (RankGang gang = gang(2)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator ->
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> {
                        if (communicator.rank() == 0) {
                          communicator.send(buffer(sent, sentCount), 1);
                        } else {
                          communicator.receive(buffer(taken, takenCount), 0);
                        }
                        communicator.barrier();
                      }));
      assertThat(failures).doesNotContainNull();
      assertThat(failures)
          .allSatisfy(
              failure ->
                  assertThat(failure)
                      .hasMessageContaining(sentCount + " " + sent)
                      .hasMessageContaining(takenCount + " " + taken));
    }
  }

  @Test
  default void crossedOrderOneByOneNamesTheOther() {
    Duration timeout = Duration.ofSeconds(2);
    try (RankGang x = RankGang.open(factory(), 2, timeout);
        RankGang y = RankGang.open(factory(), 2, timeout)) {
      List<CollectiveException> failures =
          x.ask(
              communicator -> {
                Communicator first = communicator.rank() == 0 ? communicator : y.rank(1);
                TypedBuffer a = filled(communicator, DataType.INT32, 10);
                return catchThrowableOfType(
                    CollectiveException.class, () -> first.allReduce(a, ReduceOp.SUM));
              });
      assertThat(failures.get(0).ranks()).containsExactly(1);
      assertThat(failures.get(1).ranks()).containsExactly(0);
      assertThat(failures.get(0)).hasMessageContaining("rank 1");
      assertThat(failures.get(1)).hasMessageContaining("rank 0");
    }
  }
}
