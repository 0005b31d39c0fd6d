package io.weft.collectives.contract;

import static io.weft.collectives.contract.CommunicatorContract.buffer;
import static io.weft.collectives.contract.CommunicatorContract.filled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllReduce;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A rank that fails, is missing or disagrees is an error on all others, soon and with its number.
 */
public interface FailureContract extends CommunicatorContract {
  Duration SHORT = Duration.ofSeconds(4);

  /** An operation of a small or large size, so that every algorithm handles the failure. */
  interface Step {
    void run(Communicator communicator, long count);
  }

  long[] FAILING_COUNTS = {1, 3_000, 300_000};

  static void allReduce(Communicator communicator, long count) {
    communicator.allReduce(filled(communicator, DataType.FLOAT32, count), ReduceOp.SUM);
  }

  static CollectiveException failureOf(Runnable action) {
    return catchThrowableOfType(CollectiveException.class, action::run);
  }

  /** Tests few ranks and more, at the same time because each waits for a timeout. */
  @Test
  default void missingRankIsNamedInTime() throws Exception {
    try (RankGang three = RankGang.open(factory(), 3, SHORT);
        RankGang five = RankGang.open(factory(), 5, SHORT)) {
      long start = System.nanoTime();
      List<Future<CollectiveException>> ofThree = allReduceWithout(1, three, 1);
      List<Future<CollectiveException>> ofFive = allReduceWithout(2, five, 300_000);
      checkMissing(1, three, ofThree);
      checkMissing(2, five, ofFive);
      long millis = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
      assertThat(millis).isLessThan(SHORT.toMillis() + 30_000);
    }
  }

  private static List<Future<CollectiveException>> allReduceWithout(
      int missing, RankGang gang, long count) {
    return gang.askAsync(
        communicator ->
            communicator.rank() == missing
                ? null
                : failureOf(() -> allReduce(communicator, count)));
  }

  private static void checkMissing(
      int missing, RankGang gang, List<Future<CollectiveException>> asked) throws Exception {
    List<CollectiveException> failures = new ArrayList<>();
    for (Future<CollectiveException> each : asked) {
      failures.add(each.get(60, TimeUnit.SECONDS));
    }
    checkNamed(failures, missing, Kind.TIMEOUT);
    for (int rank = 0; rank < gang.nranks(); rank++) {
      CollectiveMetrics metrics = gang.rank(rank).metrics();
      long failed = rank == missing ? 0 : 1;
      assertThat(metrics.total(Algorithm.UNFINISHED).failures()).isEqualTo(failed);
      assertThat(metrics.lines()).hasSize((int) failed);
    }
  }

  /** A rank may learn of the other's failure before it starts, and then counts nothing. */
  @Test
  default void groupThatFailsIsCountedWithAllItsOperations() {
    try (RankGang gang = gang(2)) {
      List<Long> counted =
          gang.ask(
              communicator -> {
                TypedBuffer data = filled(communicator, DataType.INT32, 100);
                ReduceOp op = communicator.rank() == 0 ? ReduceOp.SUM : ReduceOp.MAX;
                AllReduce operation = new AllReduce(data, data, op);
                assertThat(failureOf(() -> communicator.runGroup(List.of(operation, operation))))
                    .isNotNull();
                return communicator.metrics().total(Algorithm.UNFINISHED).failures();
              });
      assertThat(counted).contains(2L).isSubsetOf(0L, 2L);
    }
  }

  private static void checkNamed(List<CollectiveException> failures, int culprit, Kind kind) {
    for (int rank = 0; rank < failures.size(); rank++) {
      if (rank != culprit) {
        CollectiveException failure = failures.get(rank);
        assertThat(failure).as("rank " + rank).isNotNull();
        assertThat(failure.ranks()).as(failure.getMessage()).containsExactly(culprit);
        assertThat(failure.kind()).as(failure.getMessage()).isEqualTo(kind);
        assertThat(failure).hasMessageContaining("rank " + culprit);
      }
    }
  }

  /** The rank is slow enough for the others to poll, ask and park. */
  @Test
  default void slowRankIsWaitedFor() {
    CountDownLatch never = new CountDownLatch(1);
    try (RankGang gang = gang(3)) {
      gang.run(
          communicator -> {
            for (long count : FAILING_COUNTS) {
              if (communicator.rank() == 1) {
                assertThat(never.await(300, TimeUnit.MILLISECONDS)).isFalse();
              }
              TypedBuffer data = filled(communicator, DataType.FLOAT32, count);
              communicator.allReduce(data, ReduceOp.SUM);
              Values.check(
                  "all-reduce with a slow rank",
                  data,
                  i -> Values.reduced(DataType.FLOAT32, ReduceOp.SUM, 3, i));
            }
          });
    }
  }

  @ParameterizedTest
  @MethodSource(PointToPointContract.SEVERAL)
  default void abortReachesWaitingRanks(int nranks) {
    int culprit = nranks - 1;
    for (long count : FAILING_COUNTS) {
      try (RankGang gang = gang(nranks)) {
        List<CollectiveException> failures =
            gang.ask(
                communicator -> {
                  if (communicator.rank() == culprit) {
                    communicator.abort("the data is bad");
                    return null;
                  }
                  return failureOf(() -> allReduce(communicator, count));
                });
        checkNamed(failures, culprit, Kind.ABORTED);
        assertThat(failures.get(0)).hasMessageContaining("the data is bad");
      }
    }
  }

  @ParameterizedTest
  @MethodSource(PointToPointContract.SEVERAL)
  default void closedRankIsNamed(int nranks) {
    for (long count : FAILING_COUNTS) {
      try (RankGang gang = gang(nranks)) {
        List<CollectiveException> failures =
            gang.ask(
                communicator -> {
                  if (communicator.rank() == 0) {
                    allReduce(communicator, count);
                    communicator.close();
                    return null;
                  }
                  return failureOf(() -> runTwice(communicator, count));
                });
        checkNamed(failures, 0, Kind.CLOSED);
      }
    }
  }

  /** The second operation cannot succeed; a slow rank may learn of the failure in the first one. */
  private static void runTwice(Communicator communicator, long count) {
    allReduce(communicator, count);
    allReduce(communicator, count);
  }

  @Test
  default void interruptedRankFailsTheOthers() {
    try (RankGang gang = gang(3)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator -> {
                if (communicator.rank() == 1) {
                  Thread.currentThread().interrupt();
                }
                try {
                  return failureOf(
                      () -> {
                        for (int i = 0; i < 100_000_000; i++) {
                          allReduce(communicator, 100);
                        }
                      });
                } finally {
                  boolean unused = Thread.interrupted();
                }
              });
      assertThat(failures).doesNotContainNull();
      assertThat(failures)
          .allSatisfy(failure -> assertThat(failure.kind()).isEqualTo(Kind.ABORTED));
    }
  }

  @Test
  default void everythingAfterAFailureFailsWithItsCause() {
    try (RankGang gang = gang(2)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator -> {
                if (communicator.rank() == 1) {
                  communicator.abort("enough");
                }
                CollectiveException first = failureOf(() -> allReduce(communicator, 1));
                CollectiveException second = failureOf(() -> communicator.barrier());
                assertThat(first).hasMessageContaining("enough");
                assertThat(communicator.failure()).isPresent();
                return second;
              });
      assertThat(failures)
          .allSatisfy(
              failure ->
                  assertThat(failure)
                      .hasMessageContaining("enough")
                      .hasMessageContaining("barrier"));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"operation", "count", "type", "reduction", "root"})
  default void disagreementIsNamed(String what) {
    try (RankGang gang = gang(3)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator ->
                  failureOf(
                      () -> {
                        disagree(communicator, what, communicator.rank() == 1);
                        communicator.barrier();
                      }));
      assertThat(failures).doesNotContainNull();
      assertThat(failures)
          .allSatisfy(
              failure -> {
                assertThat(failure.kind()).as(failure.getMessage()).isEqualTo(Kind.MISMATCH);
                assertThat(failure.ranks()).contains(1).hasSize(2);
                assertThat(failure).hasMessageContaining("rank 1");
              });
    }
  }

  private static void disagree(Communicator communicator, String what, boolean odd) {
    TypedBuffer ints = buffer(DataType.INT32, 100);
    TypedBuffer more = buffer(DataType.INT32, 101);
    TypedBuffer floats = buffer(DataType.FLOAT32, 100);
    switch (what) {
      case "operation" -> {
        if (odd) {
          communicator.broadcast(ints, 0);
        } else {
          communicator.allReduce(ints, ReduceOp.SUM);
        }
      }
      case "count" -> communicator.allReduce(odd ? more : ints, ReduceOp.SUM);
      case "type" -> communicator.allReduce(odd ? floats : ints, ReduceOp.SUM);
      case "reduction" -> communicator.allReduce(ints, odd ? ReduceOp.MIN : ReduceOp.SUM);
      default -> communicator.reduce(ints, ints, ReduceOp.SUM, odd ? 1 : 0);
    }
  }

  @Test
  default void wrongArgumentsBreakNothing() {
    try (RankGang gang = gang(2)) {
      gang.run(
          communicator -> {
            TypedBuffer small = buffer(DataType.INT32, 3);
            TypedBuffer large = buffer(DataType.INT32, 5);
            for (Runnable wrong :
                List.<Runnable>of(
                    () -> communicator.allReduce(small, large, ReduceOp.SUM),
                    () ->
                        communicator.allReduce(large.slice(0, 3), large.slice(1, 3), ReduceOp.SUM),
                    () -> communicator.allGather(small, large),
                    () -> communicator.reduceScatter(large, small, ReduceOp.SUM),
                    () -> communicator.allToAll(small, small),
                    () -> communicator.broadcast(small, 2),
                    () -> communicator.send(small, -1))) {
              assertThat(failureOf(wrong).kind()).isEqualTo(Kind.INVALID);
            }
            allReduce(communicator, 10);
          });
    }
  }

  @Test
  default void submittedOperationsRunInOrderAcrossLanes() {
    try (RankGang gang = gang(3)) {
      gang.run(
          communicator -> {
            try (Lane one = lane("one-" + communicator.rank());
                Lane two = lane("two-" + communicator.rank())) {
              List<Event> events = new ArrayList<>();
              List<TypedBuffer> results = new ArrayList<>();
              for (int i = 0; i < 40; i++) {
                TypedBuffer data = filled(communicator, DataType.INT32, 1 + i * 500);
                results.add(data);
                Lane lane = (i + communicator.rank()) % 3 == 0 ? one : two;
                events.add(communicator.submit(new AllReduce(data, data, ReduceOp.SUM), lane));
              }
              communicator.barrier();
              for (int i = 0; i < events.size(); i++) {
                events.get(i).await(Deadline.after(Duration.ofSeconds(30)));
                Values.check(
                    "submitted " + i,
                    results.get(i),
                    index -> Values.reduced(DataType.INT32, ReduceOp.SUM, 3, index));
              }
            }
          });
    }
  }

  private static Lane lane(String name) {
    return HostLane.open(name, Duration.ofSeconds(30));
  }

  @Test
  default void failureOfASubmittedOperationArrivesInItsEvent() throws Exception {
    try (RankGang gang = RankGang.open(factory(), 2, Duration.ofSeconds(2));
        Lane lane = lane("failing")) {
      Communicator rank = gang.rank(0);
      TypedBuffer data = buffer(DataType.INT32, 10);
      Event event = rank.submit(new AllReduce(data, data, ReduceOp.SUM), lane);
      CountDownLatch done = new CountDownLatch(1);
      event.whenDone(cause -> done.countDown());
      assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
      assertThat(event.failure()).isPresent();
      assertThat(((CollectiveException) event.failure().orElseThrow()).ranks()).containsExactly(1);
    }
  }

  @Test
  default void operationDroppedByItsLaneBreaksTheCommunicator() {
    try (RankGang gang = gang(2)) {
      CountDownLatch blocked = new CountDownLatch(1);
      Lane lane = lane("dropping");
      CountDownLatch started = new CountDownLatch(1);
      Event before =
          lane.submit(
              "something slow",
              () -> {
                started.countDown();
                blocked.await(20, TimeUnit.SECONDS);
              });
      TypedBuffer data = buffer(DataType.INT32, 10);
      Event dropped = gang.rank(0).submit(new AllReduce(data, data, ReduceOp.SUM), lane);
      await().until(() -> started.getCount() == 0);
      Thread closing = new Thread(lane::close);
      closing.start();
      await().until(() -> dropped.failure().isPresent());
      await().until(() -> gang.rank(0).failure().isPresent());
      blocked.countDown();
      assertThat(failureOf(() -> allReduce(gang.rank(1), 10))).hasMessageContaining("dropped");
      before.await(Deadline.after(Duration.ofSeconds(60)));
    }
  }

  /** Many threads on one communicator take turns, and the n-th calls of all ranks match. */
  @Test
  default void threadsOfOneRankTakeTurns() {
    try (RankGang gang = gang(2)) {
      List<Future<Integer>> asked = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        asked.addAll(
            gang.askAsync(
                communicator -> {
                  for (int i = 0; i < 50; i++) {
                    allReduce(communicator, 777);
                  }
                  return 0;
                }));
      }
      assertThat(asked).allSatisfy(future -> assertThat(future.get(60, TimeUnit.SECONDS)).isZero());
    }
  }

  @Test
  default void communicatorsRunConcurrently() {
    try (RankGang one = gang(2);
        RankGang two = gang(3)) {
      List<Future<Integer>> asked = new ArrayList<>();
      for (RankGang gang : List.of(one, two)) {
        asked.addAll(
            gang.askAsync(
                communicator -> {
                  Random random = new Random(7);
                  for (int i = 0; i < 100; i++) {
                    RandomStep.run(communicator, random, "beside " + i);
                  }
                  return 0;
                }));
      }
      assertThat(asked).allSatisfy(future -> assertThat(future.get(60, TimeUnit.SECONDS)).isZero());
    }
  }
}
