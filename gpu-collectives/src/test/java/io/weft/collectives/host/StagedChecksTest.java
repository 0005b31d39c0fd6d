package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.AllReduce;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.StagedCollectives.Chunks;
import io.weft.device.Deadline;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Long staged work ends early although no sync is long enough to check for a reason. */
class StagedChecksTest {
  private static final BufferSizes SIZES = new BufferSizes(128, 128, 128);

  private final PrivateBlocks blocks = new PrivateBlocks(2, SIZES);
  private final AtomicInteger worked = new AtomicInteger();
  private Optional<CollectiveException> failure = Optional.empty();

  /** Runs many chunks with a peer that has always passed the next sync already. */
  private void run(int chunks, Duration timeout, Runnable work) {
    Call call = new Call();
    TypedBuffer nothing = TypedBuffer.empty(DataType.INT32);
    call.start(
        new AllReduce(nothing, nothing, ReduceOp.SUM).signature(), 0, Deadline.after(timeout));
    HostWaitCheck watch =
        new HostWaitCheck(0, call, () -> failure, blocks.localPeers(0), RemoteRanks.NONE, 0);
    HostRanks host = blocks.localPeers(0).hostRanks(new WaitLoop(watch, 2, false));
    blocks.block(1).publishStep(10 * chunks);
    new StagedCollectives(host, new Reductions(), SIZES.stageBytes())
        .run(
            chunks,
            new Chunks() {
              @Override
              public void stage(long chunk, int turn) {
                // The test is about the syncs.
              }

              @Override
              public void work(long chunk, int turn) {
                worked.incrementAndGet();
                work.run();
              }
            });
  }

  private CollectiveException fails(Duration timeout, Runnable work) {
    CollectiveException thrown =
        catchThrowableOfType(CollectiveException.class, () -> run(1000, timeout, work));
    assertThat(worked.get()).isEqualTo(StagedCollectives.CHECKED_CHUNKS);
    return thrown;
  }

  @Test
  void anAbortIsNoticed() {
    CollectiveException abort =
        new CollectiveException(Kind.ABORTED, List.of(0), "the data is bad");
    assertThat(fails(Duration.ofMinutes(5), () -> failure = Optional.of(abort))).isSameAs(abort);
  }

  @Test
  void anInterruptIsNoticed() {
    Runnable interrupt = () -> Thread.currentThread().interrupt();
    try {
      assertThat(fails(Duration.ofMinutes(5), interrupt).kind()).isEqualTo(Kind.ABORTED);
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void theDeadlineIsNoticed() {
    assertThat(fails(Duration.ofNanos(1), () -> {}).kind()).isEqualTo(Kind.TIMEOUT);
  }

  @Test
  void theEndOfAPeerAfterItsPartIsNoFailure() {
    run(
        StagedCollectives.CHECKED_CHUNKS,
        Duration.ofMinutes(5),
        () -> {
          if (worked.get() == StagedCollectives.CHECKED_CHUNKS) {
            blocks.block(1).close();
          }
        });
    assertThat(worked.get()).isEqualTo(StagedCollectives.CHECKED_CHUNKS);
  }
}
