package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.TimeoutDiagnosis.StatusPoll;
import io.weft.collectives.host.WaitLoop.AwaitedRanks;
import io.weft.collectives.host.WaitLoop.WaitCheck;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Checks, while this rank waits, for failures and ends of other ranks, mismatches, interrupts and
 * the deadline. One thread at a time.
 */
final class HostWaitCheck implements WaitCheck {
  private static final long LIVENESS_NANOS = 50_000_000;

  /** Shorter waits send no messages. */
  private static final long ASK_AFTER_NANOS = 200_000_000;

  private final int me;
  private final Call call;
  private final Supplier<Optional<CollectiveException>> failure;
  private final LocalPeers localPeers;
  private final RemoteRanks remotes;
  private final long slackNanos;
  private int published = -1;
  private long waitingSince;
  private long lastLiveness;

  /**
   * Creates the checks for one rank.
   *
   * @param failure of this rank's communicator, set by the thread that learns of it
   * @param localPeers the ranks on this host
   * @param remotes the ranks on other hosts
   * @param slackNanos the time before the deadline at which the diagnosis starts
   */
  HostWaitCheck(
      int me,
      Call call,
      Supplier<Optional<CollectiveException>> failure,
      LocalPeers localPeers,
      RemoteRanks remotes,
      long slackNanos) {
    this.me = me;
    this.call = call;
    this.failure = failure;
    this.localPeers = localPeers;
    this.remotes = remotes;
    this.slackNanos = slackNanos;
  }

  @Override
  public void check(AwaitedRanks awaited) {
    failure.get().ifPresent(HostWaitCheck::fail);
    localPeers.failure().ifPresent(HostWaitCheck::fail);
    List<Integer> ranks = awaited.ranks();
    if (ranks.isEmpty()) {
      return;
    }
    publish(ranks.get(0));
    checkInterrupt(ranks);
    checkLocalPeers(ranks, awaited);
    checkRemotes(ranks);
    if (call.deadline().earlierBy(slackNanos).expired()) {
      throw new TimeoutDiagnosis(me, new StatusPoll(localPeers, remotes, call)).of(call, ranks);
    }
  }

  /**
   * Checked first: an interrupt also breaks this rank's sockets, which is not the fault of the
   * others.
   */
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
    localPeers.mine().publishBeat();
    if (published < 0) {
      waitingSince = System.nanoTime();
    }
    if (published != rank) {
      published = rank;
      localPeers.mine().publishWait(new WaitStatus(rank, call.sequence(), call.signature()));
    }
  }

  private void checkLocalPeers(List<Integer> ranks, AwaitedRanks awaited) {
    boolean thorough = System.nanoTime() - lastLiveness > LIVENESS_NANOS;
    if (thorough) {
      lastLiveness = System.nanoTime();
    }
    for (int rank : ranks) {
      if (localPeers.has(rank)) {
        checkLocalPeer(rank, thorough, awaited);
      }
    }
  }

  /** A rank may have done its part before it closed, so this checks for the part once more. */
  private void checkLocalPeer(int rank, boolean thorough, AwaitedRanks awaited) {
    if (localPeers.isClosed(rank) && awaited.ranks().contains(rank)) {
      throw TimeoutDiagnosis.closed(call, rank);
    }
    localPeers.waiting(rank).ifPresent(status -> compare(rank, status));
    if (thorough && localPeers.isDead(rank) && awaited.ranks().contains(rank)) {
      throw localPeers.dead(rank, call);
    }
  }

  private void checkRemotes(List<Integer> ranks) {
    if (remotes.isEmpty()) {
      return;
    }
    boolean waitsLong = System.nanoTime() - waitingSince > ASK_AFTER_NANOS;
    for (int rank : ranks) {
      if (remotes.has(rank)) {
        remotes.linkFailure(rank, call).ifPresent(HostWaitCheck::fail);
        if (waitsLong) {
          remotes.waiting(rank).ifPresent(status -> compare(rank, status));
        }
      }
    }
  }

  /** Two ranks that wait in different operations with the same number never continue. */
  private void compare(int rank, WaitStatus status) {
    if (call.signature().isCollective()
        && status.signature().isCollective()
        && status.sequence() == call.sequence()
        && !status.signature().equals(call.signature())) {
      throw SignatureMismatch.between(
          me, call.signature(), call.sequence(), rank, status.signature(), status.sequence());
    }
  }

  @Override
  public void endWait() {
    published = -1;
    localPeers.mine().publishNoWait();
  }
}
