package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.AllToAll;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.CommunicatorContract;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostCommunicators.HostSetup.HostIdentity;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.HostOptions.KernelCopy;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.collectives.host.ProcessMemory.Location;
import io.weft.collectives.host.SymmetricTable.HostRegions;
import io.weft.device.Deadline;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Two ranks choose by the sum of what both have measured, even if one alone would choose otherwise.
 */
class KernelCopyTrialTest {
  private static final DataType TYPE = DataType.FLOAT32;
  private static final long LARGE = 1 << 20;

  private final PrivateBlocks blocks = new PrivateBlocks(2, BufferSizes.DEFAULT);
  private final AtomicInteger measured = new AtomicInteger();

  /** Binds the system's function, as every rank does before it has a communicator. */
  @BeforeAll
  static void readsItsOwnMemory() {
    Location self = ProcessMemory.own(HostIdentity.PROCESS);
    assertThat(new ProcessMemory().refusal(self, HostIdentity.PROCESS)).isEmpty();
  }

  /** One rank, with a clock that shows these times for the two ways. */
  private final class Rank {
    private final int me;
    private final Call call = new Call();
    private final KernelCopyTrial trial;
    private final SharedMemoryEngine engine;
    private long collectives;

    private Rank(int me, long stagedNanos, long kernelNanos) {
      this.me = me;
      LocalPeers peers = blocks.localPeers(me);
      WaitLoop waiting =
          new WaitLoop(
              new HostWaitCheck(me, call, Optional::empty, peers, RemoteRanks.NONE, 0), 2, false);
      HostRanks host = peers.hostRanks(waiting);
      int self = Math.toIntExact(ProcessHandle.current().pid());
      KernelCopyCollectives kernel = new KernelCopyCollectives(host, waiting, List.of(self, self));
      trial =
          new KernelCopyTrial(
              host,
              kernel,
              BufferSizes.DEFAULT.stageBytes(),
              KernelCopy.MEASURED,
              clock(stagedNanos, kernelNanos));
      engine =
          new SharedMemoryEngine(
              host,
              new HostRegions(me, peers.ranks()).table(),
              new RankGroup(
                  me,
                  peers.ranks(),
                  new PointToPoint(me, 2, peer -> blocks.link(me, peer), waiting)),
              BufferSizes.DEFAULT,
              false,
              Optional.of(kernel),
              Optional.of(trial));
    }

    private void start(Operation operation, Duration timeout) {
      call.start(operation.signature(), collectives++, Deadline.after(timeout));
    }

    private Algorithm execute(Operation operation) {
      start(operation, Duration.ofSeconds(60));
      return engine.execute(call, operation);
    }

    private Algorithm gather(long part) {
      TypedBuffer mine = CommunicatorContract.buffer(TYPE, part);
      Values.fill(mine, me);
      TypedBuffer all = CommunicatorContract.buffer(TYPE, 2 * part);
      Algorithm algorithm = execute(new AllGather(mine, all));
      Reference.reachabilityFence(mine);
      Values.check("gather", all, i -> Values.of((int) (i / part), i % part));
      return algorithm;
    }

    private Algorithm swap(long part) {
      TypedBuffer mine = CommunicatorContract.buffer(TYPE, 2 * part);
      Values.fill(mine, me);
      TypedBuffer all = CommunicatorContract.buffer(TYPE, 2 * part);
      Algorithm algorithm = execute(new AllToAll(mine, all));
      Reference.reachabilityFence(mine);
      Values.check("swap", all, i -> Values.of((int) (i / part), me * part + i % part));
      return algorithm;
    }
  }

  /**
   * A clock that is read at the start and the end of both ways in turn. Stages take ten times as
   * long in the first round, and twice as long in the last one.
   */
  private LongSupplier clock(long stagedNanos, long kernelNanos) {
    AtomicInteger reads = new AtomicInteger();
    return () -> {
      measured.incrementAndGet();
      int read = reads.getAndIncrement();
      int slower = read < 4 ? 10 : read < 12 ? 1 : 2;
      long nanos = read % 4 < 2 ? stagedNanos * slower : kernelNanos;
      return read % 2 == 0 ? 0 : nanos;
    };
  }

  private static <T> List<T> together(Callable<T> first, Callable<T> second) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(2);
    List<T> results = new ArrayList<>();
    try {
      for (Future<T> result : threads.invokeAll(List.of(first, second), 2, TimeUnit.MINUTES)) {
        results.add(result.get());
      }
    } finally {
      threads.shutdownNow();
    }
    return results;
  }

  @ParameterizedTest
  @CsvSource({
    "10, 20, 10, 20, false",
    "20, 10, 20, 10, true",
    "10, 30, 20, 10, false",
    "10, 20, 40, 10, true",
    "10, 10, 10, 10, false"
  })
  void bothRanksChooseTheSame(
      long staged0, long kernel0, long staged1, long kernel1, boolean byKernel) throws Exception {
    List<Boolean> choices =
        together(
            () -> choose(new Rank(0, staged0, kernel0)),
            () -> choose(new Rank(1, staged1, kernel1)));
    assertThat(choices).containsExactly(byKernel, byKernel);
    assertThat(measured).as("a start and an end of two ways in four rounds, twice").hasValue(32);
  }

  private static boolean choose(Rank rank) {
    KernelCopyTrial trial = rank.trial;
    rank.start(
        new AllGather(TypedBuffer.empty(TYPE), TypedBuffer.empty(TYPE)), Duration.ofMinutes(1));
    assertThat(trial.prefersKernel(rank.call, 48 << 10)).as("little data").isFalse();
    assertThat(trial.mayPreferKernel(LARGE)).as("before the measurement").isTrue();
    boolean chosen = trial.prefersKernel(rank.call, LARGE);
    assertThat(trial.mayPreferKernel(LARGE)).isEqualTo(chosen);
    assertThat(trial.prefersKernel(rank.call, LARGE)).as("later").isEqualTo(chosen);
    return chosen;
  }

  /**
   * Also in the operation that measures: its parts of 40,000 bytes fit a slot, but are not in it.
   */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void operationsTakeTheFasterWay(boolean byKernel) throws Exception {
    Callable<List<Algorithm>> first = () -> exchange(new Rank(0, byKernel ? 20 : 10, 15));
    Callable<List<Algorithm>> second = () -> exchange(new Rank(1, byKernel ? 20 : 10, 15));
    Algorithm large = byKernel ? Algorithm.KERNEL_COPY : Algorithm.STAGED;
    Algorithm middle = byKernel ? Algorithm.KERNEL_COPY : Algorithm.ONE_SHOT;
    Algorithm small = Algorithm.ONE_SHOT;
    assertThat(together(first, second))
        .containsOnly(List.of(middle, large, middle, large, large, small, small));
    assertThat(measured).hasValue(32);
  }

  private static List<Algorithm> exchange(Rank rank) {
    return List.of(
        rank.gather(10_000),
        rank.gather(100_000),
        rank.gather(10_001),
        rank.swap(100_000),
        rank.swap(10_000),
        rank.gather(6_000),
        rank.swap(6_000));
  }

  @Test
  void aTrialWithoutTheOtherRankHasADeadline() {
    Rank rank = new Rank(0, 10, 20);
    rank.start(
        new AllGather(TypedBuffer.empty(TYPE), TypedBuffer.empty(TYPE)), Duration.ofMillis(200));
    CollectiveException failure =
        catchThrowableOfType(
            CollectiveException.class, () -> rank.trial.prefersKernel(rank.call, LARGE));
    assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT);
    assertThat(failure.ranks()).containsExactly(1);
  }
}
