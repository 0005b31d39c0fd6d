package io.weft.collectives.nccl;

import static io.weft.collectives.contract.CommunicatorContract.filled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.contract.RandomStep;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import io.weft.logging.CapturedLogs;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The surviving ranks of a communicator go on without the missing ones. */
@UsesDoubles
class NcclShrinkTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final CommunicatorOptions OPTIONS = CommunicatorOptions.DEFAULT.withTimeout(LONG);

  /**
   * Ranks wait for one another, and the common pool may have fewer threads than there are ranks.
   */
  private static final Executor THREADS = task -> new Thread(task, "shrink-test").start();

  @TempDir Path folder;

  private NcclCommunicators factory(int rank, boolean shrinks) {
    NcclOptions options =
        NcclOptions.on(GpuDoubles.device(rank)).withLinger(Duration.ofMillis(500));
    return new NcclCommunicators(
        DoubleLibraries.options(),
        shrinks ? options.withShrinking() : options,
        new HostCommunicators(HostOptions.defaults().withFolder(folder)));
  }

  private RankGang gang(int nranks, boolean shrinks) {
    List<CommunicatorFactory> factories = new ArrayList<>();
    for (int rank = 0; rank < nranks; rank++) {
      factories.add(factory(rank, shrinks));
    }
    return RankGang.open(factories, LONG);
  }

  @BeforeEach
  void forgetEarlierLogs() {
    CapturedLogs.clear();
  }

  private static String logs() {
    return String.join("\n", CapturedLogs.lines());
  }

  @AfterEach
  void nothingIsLeaked() {
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  /** Shrinks to these ranks, in this order; returns the communicator or the failure of each. */
  private List<Object> shrink(RankGang gang, List<Integer> survivors) {
    List<Bootstrap> ends = ThreadBootstrap.open(survivors.size());
    List<CompletableFuture<Object>> made = new ArrayList<>();
    for (int i = 0; i < survivors.size(); i++) {
      Bootstrap end = ends.get(i);
      int rank = survivors.get(i);
      made.add(
          CompletableFuture.supplyAsync(
              () -> {
                try (end) {
                  return factory(rank, true)
                      .shrink((DeviceCommunicator) gang.rank(rank), end, OPTIONS);
                } catch (CollectiveException e) {
                  return e;
                }
              },
              THREADS));
    }
    return made.stream().map(CompletableFuture::join).toList();
  }

  private static void computeAndClose(List<Object> rest) {
    List<CompletableFuture<Void>> ranks =
        rest.stream()
            .map(each -> CompletableFuture.runAsync(() -> compute((Communicator) each), THREADS))
            .toList();
    try {
      ranks.forEach(CompletableFuture::join);
    } catch (CompletionException e) {
      throw new AssertionError(e.getCause());
    } finally {
      rest.stream()
          .map(each -> CompletableFuture.runAsync(((Communicator) each)::close, THREADS))
          .toList()
          .forEach(CompletableFuture::join);
    }
  }

  private static void compute(Communicator communicator) {
    Random random = new Random(communicator.nranks());
    for (int step = 0; step < 20; step++) {
      RandomStep.run(communicator, random, "step " + step);
    }
    TypedBuffer data = filled(communicator, DataType.INT32, 20_000);
    communicator.allReduce(data, ReduceOp.SUM);
    int nranks = communicator.nranks();
    Values.check("sum", data, i -> Values.reduced(DataType.INT32, ReduceOp.SUM, nranks, i));
  }

  private static CollectiveException reduceAndFail(Communicator communicator) {
    return catchThrowableOfType(
        CollectiveException.class,
        () -> communicator.allReduce(filled(communicator, DataType.INT32, 1000), ReduceOp.SUM));
  }

  @Test
  void survivorsOfARankThatClosedShrink() {
    try (RankGang gang = gang(4, true)) {
      gang.run(NcclShrinkTest::compute);
      gang.rank(1).close();
      List<Object> rest = shrink(gang, List.of(0, 2, 3));
      assertThat(logs()).contains("shrunk by NCCL").doesNotContain("a new one is made");
      assertThat(rest).extracting(each -> ((Communicator) each).rank()).containsExactly(0, 1, 2);
      computeAndClose(rest);
    }
  }

  /** The device keeps no work that no rank waits for. */
  @Test
  void operationThatHangsInNcclIsEndedAndTheRestShrinks() {
    try (RankGang gang = gang(3, true)) {
      DoubleLibraries.ncclControls().ncclDoubleHang(3);
      var failures = gang.askAsync(NcclShrinkTest::reduceAndFail);
      gang.rank(2).abort("for the test");
      failures.forEach(each -> assertThat(each).succeedsWithin(LONG).isNotNull());
      DoubleLibraries.ncclControls().ncclDoubleHang(0);
      List<Object> rest = shrink(gang, List.of(0, 1));
      assertThat(logs()).contains("shrunk by NCCL");
      computeAndClose(rest);
    }
  }

  @Test
  void errorInsideNcclDoesNotKeepTheRestFromShrinking() {
    try (RankGang gang = gang(3, true)) {
      DoubleLibraries.ncclControls().ncclDoubleFailNext(NcclLibrary.REMOTE_ERROR);
      assertThat(gang.ask(NcclShrinkTest::reduceAndFail)).doesNotContainNull();
      List<Object> rest = shrink(gang, List.of(0, 1));
      assertThat(rest).allSatisfy(each -> assertThat(each).isInstanceOf(Communicator.class));
      computeAndClose(rest);
    }
  }

  /** As between hosts when one is gone: NCCL reports the failure permanently and cannot shrink. */
  @Test
  void proxyThatFailedIsNotShrunk() {
    try (RankGang gang = gang(3, true)) {
      gang.run(NcclShrinkTest::compute);
      DoubleLibraries.ncclControls().ncclDoubleBreakProxies(NcclLibrary.REMOTE_ERROR);
      assertThat(gang.ask(NcclShrinkTest::reduceAndFail)).doesNotContainNull();
      gang.rank(2).close();
      DoubleLibraries.ncclControls().ncclDoubleBreakProxies(0);
      List<Object> rest = shrink(gang, List.of(0, 1));
      assertThat(logs()).contains("a new one is made: on rank 0, ", "NCCL's network failed");
      computeAndClose(rest);
    }
  }

  @Test
  void abortedCommunicatorIsReplacedByANewOneWithTheReason() {
    try (RankGang gang = gang(3, false)) {
      gang.rank(0).close();
      List<Object> rest = shrink(gang, List.of(1, 2));
      assertThat(logs())
          .contains(
              "is not shrunk to 2 ranks, a new one is made: on rank 1, its options do not keep");
      computeAndClose(rest);
    }
  }

  @Test
  void ranksInAnotherOrderGetANewCommunicator() {
    try (RankGang gang = gang(3, true)) {
      List<Object> rest = shrink(gang, List.of(2, 0));
      assertThat(logs()).contains("its ranks are in another order than before");
      computeAndClose(rest);
    }
  }

  /** Shrinks a shrunk communicator. */
  @Test
  void shrunkAgainAndAgain() {
    try (RankGang gang = gang(4, true)) {
      List<Object> three = shrink(gang, List.of(0, 1, 3));
      List<Bootstrap> ends = ThreadBootstrap.open(2);
      List<CompletableFuture<Object>> two =
          IntStream.range(0, 2)
              .mapToObj(
                  i ->
                      CompletableFuture.<Object>supplyAsync(
                          () ->
                              factory(i, true)
                                  .shrink((DeviceCommunicator) three.get(i), ends.get(i), OPTIONS),
                          THREADS))
              .toList();
      computeAndClose(two.stream().map(CompletableFuture::join).toList());
      three.forEach(each -> ((Communicator) each).close());
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void inconsistentSurvivorsAreRefusedOnAllRanks(boolean areAllThere) {
    try (RankGang gang = gang(2, true);
        RankGang other = gang(2, true)) {
      List<Bootstrap> ends = ThreadBootstrap.open(2);
      List<CompletableFuture<CollectiveException>> failures = new ArrayList<>();
      for (int rank = 0; rank < 2; rank++) {
        RankGang from = rank == 0 || areAllThere ? gang : other;
        int at = rank;
        failures.add(
            CompletableFuture.supplyAsync(
                () ->
                    catchThrowableOfType(
                        CollectiveException.class,
                        () ->
                            factory(at, true)
                                .shrink((DeviceCommunicator) from.rank(at), ends.get(at), OPTIONS)),
                THREADS));
      }
      for (CompletableFuture<CollectiveException> each : failures) {
        CollectiveException failure = each.join();
        assertThat(failure.kind()).isEqualTo(areAllThere ? Kind.INVALID : Kind.MISMATCH);
        assertThat(failure)
            .hasMessageContaining(
                areAllThere ? "all 2 ranks of communicator" : "rank 0 was rank 0 of communicator");
      }
    }
  }
}
