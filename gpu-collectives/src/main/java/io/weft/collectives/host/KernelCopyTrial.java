package io.weft.collectives.host;

import io.weft.collectives.AllGather;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.KernelCopy;
import io.weft.memory.Memory;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds out how two ranks exchange large private data faster: through stages or with the kernel's
 * copy. Stages cost two copies, but no look-up of pages. They win where both processors have them
 * in near caches, and lose where a cache line that changes hands costs as much as one in memory:
 * there they took 1.5 times as long.
 *
 * <p>The ranks measure both ways at the first operation to which it matters, which takes some
 * milliseconds and 1.5 MiB of direct memory. Each adds up what both have measured, so they choose
 * the same. One thread at a time.
 */
final class KernelCopyTrial {
  private static final Logger LOG = LoggerFactory.getLogger(KernelCopyTrial.class);

  /** What a rank receives in the all-gather of the trial; half of it is its own. */
  private static final int BYTES = 1 << 20;

  private static final int ROUNDS = 4;

  /**
   * Up to here the other way is mostly a deposit of the entry, which is as fast. Where the kernel
   * won the trial, it also won for 64 KiB: 0.9 of the time.
   */
  private static final int MAX_UNMEASURED = 48 << 10;

  private final HostRanks host;
  private final StagedCollectives staged;
  private final KernelCopyCollectives kernel;
  private final LongSupplier nanoTime;
  private Verdict verdict;

  private enum Verdict {
    UNKNOWN,
    KERNEL,
    STAGES
  }

  /**
   * The trial of a rank, for a host with two ranks.
   *
   * @param kernelCopy without a trial if it is {@link KernelCopy#ALWAYS}; the same on both
   * @param nanoTime the clock
   */
  KernelCopyTrial(
      HostRanks host,
      KernelCopyCollectives kernel,
      int stageBytes,
      KernelCopy kernelCopy,
      LongSupplier nanoTime) {
    this.host = host;
    this.staged = new StagedCollectives(host, new Reductions(), stageBytes);
    this.kernel = kernel;
    this.nanoTime = nanoTime;
    this.verdict = kernelCopy == KernelCopy.ALWAYS ? Verdict.KERNEL : Verdict.UNKNOWN;
  }

  /**
   * Whether the kernel's copy is faster, or the ranks do not know yet; the same on both.
   *
   * @param bytes that both ranks exchange; the same on both
   */
  boolean mayPreferKernel(long bytes) {
    return bytes > MAX_UNMEASURED && verdict != Verdict.STAGES;
  }

  /**
   * Whether the kernel's copy is faster. Both ranks call it after the entry of an operation.
   *
   * @param bytes that both ranks exchange; the same on both
   */
  boolean prefersKernel(Call call, long bytes) {
    if (!mayPreferKernel(bytes)) {
      return false;
    }
    if (verdict == Verdict.UNKNOWN) {
      verdict = measure(call) ? Verdict.KERNEL : Verdict.STAGES;
    }
    return verdict == Verdict.KERNEL;
  }

  private boolean measure(Call call) {
    TypedBuffer send = TypedBuffer.wrap(ByteBuffer.allocateDirect(BYTES / 2), DataType.INT8);
    TypedBuffer receive = TypedBuffer.wrap(ByteBuffer.allocateDirect(BYTES), DataType.INT8);
    try {
      return measure(call, new AllGather(send, receive));
    } finally {
      // Copies have only their addresses.
      Reference.reachabilityFence(send);
      Reference.reachabilityFence(receive);
    }
  }

  private boolean measure(Call call, AllGather trial) {
    TypedBuffer send = trial.send();
    TypedBuffer receive = trial.receive();
    long sendOfPeer = exchange(send.address(), 0).first();
    long byStages = Long.MAX_VALUE;
    long byKernel = Long.MAX_VALUE;
    for (int round = 0; round < ROUNDS; round++) {
      byStages = Math.min(byStages, nanos(() -> staged.allGather(trial)));
      byKernel =
          Math.min(
              byKernel, nanos(() -> kernel.allGather(call, peer -> sendOfPeer, send, receive)));
    }
    Pair peer = exchange(byStages, byKernel);
    LOG.debug(
        "rank {}, all-gather of {} bytes by two ranks: {} ns through stages, {} ns by the kernel",
        host.rank(host.me()),
        BYTES,
        byStages,
        byKernel);
    return byKernel + peer.second() < byStages + peer.first();
  }

  private long nanos(Runnable exchange) {
    host.sync();
    long start = nanoTime.getAsLong();
    exchange.run();
    return nanoTime.getAsLong() - start;
  }

  private record Pair(long first, long second) {}

  /** Gives two numbers to the other rank, in the next stage, and returns its own. */
  private Pair exchange(long first, long second) {
    int turn = host.nextStage();
    long mine = staged.stage(host.me(), turn);
    Memory.putLong(mine, first);
    Memory.putLong(mine + Long.BYTES, second);
    host.sync();
    long theirs = staged.stage(host.after(1), turn);
    return new Pair(Memory.getLong(theirs), Memory.getLong(theirs + Long.BYTES));
  }
}
