package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.AllReduce;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
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
import java.util.concurrent.atomic.AtomicIntegerArray;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks of a host stay synchronised when the counters of entries and syncs wrap around. */
class HostRanksTest {
  private static final int RANKS = 3;
  private static final int ROUNDS = 200;

  private final PrivateBlocks blocks = new PrivateBlocks(RANKS, new BufferSizes(128, 128, 128));
  private final AtomicIntegerArray arrived = new AtomicIntegerArray(2);

  private void startAt(int counter) {
    for (ControlBlock block : blocks.all()) {
      block.publishStamp(counter - 1);
      block.publishStamp(counter);
      block.publishStep(counter);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, Integer.MAX_VALUE - ROUNDS / 2, -ROUNDS / 2})
  void noRankLeavesEarlyWhenCountersWrap(int start) throws Exception {
    startAt(start);
    List<Callable<Integer>> ranks = new ArrayList<>();
    for (int rank = 0; rank < RANKS; rank++) {
      int me = rank;
      ranks.add(() -> stamps(me));
    }
    ExecutorService threads = Executors.newFixedThreadPool(RANKS);
    try {
      for (Future<Integer> stamp : threads.invokeAll(ranks, 2, TimeUnit.MINUTES)) {
        assertThat(stamp.get()).isEqualTo(start + ROUNDS);
      }
    } finally {
      threads.shutdownNow();
    }
    for (ControlBlock block : blocks.all()) {
      assertThat(block.step()).isEqualTo(start + ROUNDS);
    }
  }

  /** Alternates entries and syncs; returns the last stamp. */
  private int stamps(int me) {
    Call call = new Call();
    HostWaitCheck watch =
        new HostWaitCheck(me, call, Optional::empty, blocks.localPeers(me), RemoteRanks.NONE, 0);
    WaitLoop waiting = new WaitLoop(watch, RANKS, false);
    HostRanks host = blocks.localPeers(me).hostRanks(waiting);
    TypedBuffer nothing = TypedBuffer.empty(DataType.INT32);
    Signature signature = new AllReduce(nothing, nothing, ReduceOp.SUM).signature();
    for (int round = 1; round <= ROUNDS; round++) {
      call.start(signature, round, Deadline.after(Duration.ofSeconds(60)));
      arrived.incrementAndGet(0);
      host.prepareEntry(call, round, 1000L * me + round);
      host.enter(call);
      assertThat(arrived.get(0)).isGreaterThanOrEqualTo(round * RANKS);
      for (int peer = 0; peer < RANKS; peer++) {
        assertThat(host.block(peer).receiveDescriptor(host.stamp()))
            .isEqualTo(1000L * peer + round);
      }
      arrived.incrementAndGet(1);
      host.sync();
      assertThat(arrived.get(1)).isGreaterThanOrEqualTo(round * RANKS);
    }
    return host.stamp();
  }
}
