package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.host.ControlBlock.ControlLayout;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.WaitLoop.AwaitedRanks;
import java.util.ArrayList;
import java.util.List;

/**
 * The ranks of a communicator that share a host, and their synchronisation. Two counters only
 * increase (and wrap around). The stamp counts entries, one per operation; an entry publishes what
 * a rank is about to do. The step counts syncs within operations.
 *
 * <p>A rank may be one entry ahead of another, never two: to pass its next entry it needs the
 * other's. So two slots, used alternately, suffice without a sync at the end.
 *
 * <p>One thread at a time.
 */
final class HostRanks {
  private final int me;
  private final int[] ranks;
  private final ControlBlock[] blocks;
  private final WaitLoop waiting;
  private int stamp;
  private int step;
  private int stageTurn;

  /**
   * Creates the view of a host's ranks. It continues from the counters in this rank's segment,
   * which are zero in a new one.
   *
   * @param me index of this rank among those of the host
   * @param ranks their ranks in the communicator, ascending
   * @param blocks their control segments
   */
  HostRanks(int me, int[] ranks, ControlBlock[] blocks, WaitLoop waiting) {
    this.me = me;
    this.ranks = ranks.clone();
    this.blocks = blocks.clone();
    this.waiting = waiting;
    this.stamp = blocks[me].lastStamp();
    this.step = blocks[me].step();
  }

  int me() {
    return me;
  }

  int size() {
    return blocks.length;
  }

  int rank(int index) {
    return ranks[index];
  }

  /** The index at this distance after this rank, so that not all ranks start with the same one. */
  int after(int distance) {
    int index = me + distance;
    return index < blocks.length ? index : index - blocks.length;
  }

  ControlBlock block(int index) {
    return blocks[index];
  }

  /** The stamp of the current entry. */
  int stamp() {
    return stamp;
  }

  /** Prepares an entry: writes the header. A payload may follow; no other rank sees it yet. */
  void prepareEntry(Call call, long sendDescriptor, long receiveDescriptor) {
    stamp++;
    blocks[me].writeHeader(stamp, call, sendDescriptor, receiveDescriptor);
  }

  /** Adds the address of the send buffer to a prepared entry that has no tiny payload. */
  void writeAddress(long send) {
    blocks[me].writeAddress(stamp, send);
  }

  /** Adds a number to a prepared entry that has no tiny payload. */
  void writeNote(long note) {
    blocks[me].writeNote(stamp, note);
  }

  /** Publishes the entry and waits for the entries of the others. */
  void enter(Call call) {
    announce();
    awaitEntries(call);
  }

  /** Publishes the entry. */
  void announce() {
    blocks[me].publishStamp(stamp);
  }

  /** Waits for the entries of the others. */
  void awaitEntries(Call call) {
    int current = stamp;
    boolean waits = false;
    for (int peer = 0; peer < blocks.length; peer++) {
      while (blocks[peer].stamp(current) != current) {
        waits = idle(waits, this::missingEntries);
      }
      if (!blocks[peer].agrees(current, call)) {
        endWait(waits);
        throw disagreement(peer, call);
      }
    }
    endWait(waits);
  }

  /**
   * Waits for a short time. One wait is for all ranks of an entry or sync: if it began anew for
   * each, a rank would spin for each before it gives up its processor.
   *
   * @param waits whether the wait has begun
   * @return true
   */
  private boolean idle(boolean waits, AwaitedRanks missing) {
    if (!waits) {
      waiting.begin();
    }
    waiting.idle(missing);
    return true;
  }

  private void endWait(boolean waits) {
    if (waits) {
      waiting.end();
    }
  }

  private List<Integer> missingEntries() {
    List<Integer> missing = new ArrayList<>();
    for (int peer = 0; peer < blocks.length; peer++) {
      if (blocks[peer].stamp(stamp) != stamp) {
        missing.add(ranks[peer]);
      }
    }
    return missing;
  }

  private CollectiveException disagreement(int peer, Call call) {
    return SignatureMismatch.between(
        ranks[me],
        call.signature(),
        call.sequence(),
        ranks[peer],
        blocks[peer].signature(stamp),
        blocks[peer].sequence(stamp));
  }

  /** Returns once all ranks have arrived; writes of each before the sync are visible to all. */
  void sync() {
    step++;
    int current = step;
    blocks[me].publishStep(current);
    boolean waits = false;
    for (int peer = 0; peer < blocks.length; peer++) {
      while (blocks[peer].step() - current < 0) {
        waits = idle(waits, this::missingSteps);
      }
    }
    endWait(waits);
  }

  private List<Integer> missingSteps() {
    List<Integer> missing = new ArrayList<>();
    for (int peer = 0; peer < blocks.length; peer++) {
      if (blocks[peer].step() - step < 0) {
        missing.add(ranks[peer]);
      }
    }
    return missing;
  }

  /**
   * Checks for failures, an interrupt and the deadline within long work, whose syncs may all be too
   * short to do so. No other rank can have ended the work.
   */
  void check() {
    waiting.begin();
    waiting.check(this::others);
    waiting.end();
  }

  private List<Integer> others() {
    List<Integer> others = new ArrayList<>();
    for (int peer = 0; peer < blocks.length; peer++) {
      if (peer != me) {
        others.add(ranks[peer]);
      }
    }
    return others;
  }

  /** The stage for the next chunk; the same on all ranks. See {@link StagedCollectives}. */
  int nextStage() {
    stageTurn = stageTurn == ControlLayout.STAGES - 1 ? 0 : stageTurn + 1;
    return stageTurn;
  }
}
