package io.weft.collectives.host;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Watches the other ranks while this one waits: their failures and ends, what they are doing, this
 * thread's interrupt, the deadline. One thread at a time.
 */
final class HostWatch implements Watch {
  private static final long LIVENESS_NANOS = 50_000_000;

  /** Short waits cost no messages. */
  private static final long ASK_AFTER_NANOS = 200_000_000;

  private final int me;
  private final Call call;
  private final Supplier<Optional<CollectiveException>> failure;
  private final Neighbours neighbours;
  private final RemoteRanks remotes;
  private final long slackNanos;
  private int published = -1;
  private long lookingSince;
  private long lastLiveness;

  /**
   * A watch for one rank.
   *
   * @param failure of this rank's communicator, set by whoever hears of one
   * @param neighbours the ranks on this host
   * @param remotes the others
   * @param slackNanos how long before the deadline to start finding out who is late
   */
  HostWatch(
      int me,
      Call call,
      Supplier<Optional<CollectiveException>> failure,
      Neighbours neighbours,
      RemoteRanks remotes,
      long slackNanos) {
    this.me = me;
    this.call = call;
    this.failure = failure;
    this.neighbours = neighbours;
    this.remotes = remotes;
    this.slackNanos = slackNanos;
  }

  @Override
  public void look(Awaited awaited) {
    failure.get().ifPresent(HostWatch::fail);
    neighbours.failure().ifPresent(HostWatch::fail);
    List<Integer> ranks = awaited.ranks();
    if (ranks.isEmpty()) {
      return;
    }
    publish(ranks.get(0));
    checkInterrupt(ranks);
    checkNeighbours(ranks, awaited);
    checkRemotes(ranks);
    if (call.deadline().earlierBy(slackNanos).expired()) {
      throw new Diagnosis(me, new Survey(neighbours, remotes, call)).of(call, ranks);
    }
  }

  /** First of all: an interrupt breaks this rank's sockets, which is not the others' fault. */
  private void checkInterrupt(List<Integer> ranks) {
    if (Thread.currentThread().isInterrupted()) {
      throw new CollectiveException(
          Kind.ABORTED,
          List.of(me),
          "rank "
              + me
              + " was interrupted in "
              + call
              + " while it waited for "
              + CollectiveException.name(ranks));
    }
  }

  private static void fail(CollectiveException cause) {
    throw cause;
  }

  private void publish(int rank) {
    neighbours.mine().publishBeat();
    if (published < 0) {
      lookingSince = System.nanoTime();
    }
    if (published != rank) {
      published = rank;
      neighbours.mine().publishWait(new WaitStatus(rank, call.sequence(), call.signature()));
    }
  }

  private void checkNeighbours(List<Integer> ranks, Awaited awaited) {
    boolean thorough = System.nanoTime() - lastLiveness > LIVENESS_NANOS;
    if (thorough) {
      lastLiveness = System.nanoTime();
    }
    for (int rank : ranks) {
      if (neighbours.has(rank)) {
        checkNeighbour(rank, thorough, awaited);
      }
    }
  }

  /** What a rank did before it closed counts, so its part is looked for once more. */
  private void checkNeighbour(int rank, boolean thorough, Awaited awaited) {
    if (neighbours.isClosed(rank) && awaited.ranks().contains(rank)) {
      throw Diagnosis.closed(call, rank);
    }
    neighbours.waiting(rank).ifPresent(status -> compare(rank, status));
    if (thorough && neighbours.isDead(rank) && awaited.ranks().contains(rank)) {
      throw neighbours.dead(rank, call);
    }
  }

  private void checkRemotes(List<Integer> ranks) {
    if (remotes.isEmpty()) {
      return;
    }
    boolean waitsLong = System.nanoTime() - lookingSince > ASK_AFTER_NANOS;
    for (int rank : ranks) {
      if (remotes.has(rank)) {
        remotes.gone(rank, call).ifPresent(HostWatch::fail);
        if (waitsLong) {
          remotes.waiting(rank).ifPresent(status -> compare(rank, status));
        }
      }
    }
  }

  /** Two ranks that wait in different operations of the same number never meet. */
  private void compare(int rank, WaitStatus status) {
    if (call.signature().isCollective()
        && status.signature().isCollective()
        && status.sequence() == call.sequence()
        && !status.signature().equals(call.signature())) {
      throw Disagreement.between(
          me, call.signature(), call.sequence(), rank, status.signature(), status.sequence());
    }
  }

  @Override
  public void stopLooking() {
    published = -1;
    neighbours.mine().publishNoWait();
  }
}
