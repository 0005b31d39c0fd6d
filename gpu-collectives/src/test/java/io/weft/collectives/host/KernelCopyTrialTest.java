package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.Barrier;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.device.Deadline;
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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Two ranks choose by the sum of what both have measured, whatever each would choose alone. */
class KernelCopyTrialTest {
  private static final long LARGE = 1 << 20;

  private final PrivateBlocks blocks = new PrivateBlocks(2, BufferSizes.DEFAULT);
  private final AtomicInteger measured = new AtomicInteger();

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
    List<Callable<Boolean>> ranks =
        List.of(() -> choose(0, staged0, kernel0), () -> choose(1, staged1, kernel1));
    ExecutorService threads = Executors.newFixedThreadPool(2);
    List<Boolean> choices = new ArrayList<>();
    try {
      for (Future<Boolean> choice : threads.invokeAll(ranks, 2, TimeUnit.MINUTES)) {
        choices.add(choice.get());
      }
    } finally {
      threads.shutdownNow();
    }
    assertThat(choices).containsExactly(byKernel, byKernel);
    assertThat(measured)
        .as("a start and an end of four rounds of two ways, on two ranks")
        .hasValue(32);
  }

  private boolean choose(int me, long stagedNanos, long kernelNanos) {
    Call call = new Call();
    call.start(new Barrier().signature(), 1, Deadline.after(Duration.ofSeconds(60)));
    LocalPeers peers = blocks.localPeers(me);
    WaitLoop waiting =
        new WaitLoop(
            new HostWaitCheck(me, call, Optional::empty, peers, RemoteRanks.NONE, 0), 2, false);
    HostRanks host = peers.hostRanks(waiting);
    int self = Math.toIntExact(ProcessHandle.current().pid());
    KernelCopyTrial trial =
        new KernelCopyTrial(
            host,
            new StagedCollectives(host, new Reductions(), BufferSizes.DEFAULT.stageBytes()),
            new KernelCopyCollectives(host, waiting, List.of(self, self)),
            true,
            clock(stagedNanos, kernelNanos));
    assertThat(trial.prefersKernel(call, 64 << 10)).as("little data").isFalse();
    assertThat(trial.mayPreferKernel(LARGE)).as("before the measurement").isTrue();
    boolean chosen = trial.prefersKernel(call, LARGE);
    assertThat(trial.mayPreferKernel(LARGE)).isEqualTo(chosen);
    assertThat(trial.prefersKernel(call, LARGE)).as("later").isEqualTo(chosen);
    return chosen;
  }

  /** A clock that is read at the start and the end of both ways in turn. */
  private LongSupplier clock(long stagedNanos, long kernelNanos) {
    AtomicInteger reads = new AtomicInteger();
    return () -> {
      measured.incrementAndGet();
      int read = reads.getAndIncrement();
      long nanos = read % 4 < 2 ? stagedNanos : kernelNanos;
      return read % 2 == 0 ? 0 : nanos;
    };
  }
}
