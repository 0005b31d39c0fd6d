package io.weft.collectives.clique;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.device.Deadline;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the communicators of cliques. The members of a clique, and nobody else, meet for every
 * acquisition through a bootstrap of their own, and a member that fails still comes, with its
 * failure. They use what they have only when all have the same; else all make a new one. So a side
 * that lost its communicator never leaves the others with half of one.
 *
 * <p>Communicators are made outside of locks. When two acquisitions of one clique race, the members
 * compare which communicator came first at each: if that is one and the same, the other is
 * discarded everywhere; if not, each acquisition keeps its own for its lease.
 *
 * <p>Thread-safe. Owns its communicators and a daemon thread for warnings, until it is closed.
 */
public final class CommunicatorCache implements AutoCloseable {
  private static final Duration WARN_AFTER = Duration.ofSeconds(10);

  private final CommunicatorFactory factory;
  private final CommunicatorOptions options;
  private final CliqueTable table = new CliqueTable();
  private final SlowWarning slow;

  /** Opens a bootstrap between the members of a clique, anew each time; the cache closes it. */
  @FunctionalInterface
  public interface Meetings {
    /** This member's end. */
    Bootstrap open(CliqueKey key, int rank) throws IOException;
  }

  /** An empty cache. */
  public CommunicatorCache(CommunicatorFactory factory, CommunicatorOptions options) {
    this(factory, options, LoggerFactory.getLogger(CommunicatorCache.class), WARN_AFTER);
  }

  CommunicatorCache(
      CommunicatorFactory factory, CommunicatorOptions options, Logger log, Duration warnAfter) {
    this.factory = factory;
    this.options = options;
    this.slow = new SlowWarning(log, warnAfter);
  }

  /**
   * A communicator of all members. Each calls this with its end of the same bootstrap.
   *
   * @param meeting used for this acquisition only; stays the caller's to close
   * @throws CollectiveException when a member failed, is known to have ended, or did not come; on
   *     all members that came
   */
  public CliqueLease acquire(CliqueKey key, CliqueMember self, Bootstrap meeting) {
    Side side = sideOf(key, self, meeting);
    table.countRequest();
    try (SlowWarning.Watched watched = watch(side)) {
      return acquire(
          side, meeting, new BootstrapRounds(meeting, Deadline.after(options.timeout())));
    }
  }

  private SlowWarning.Watched watch(Side side) {
    return slow.watch(options.prefix().ofLane() + "acquiring " + side);
  }

  private static Side sideOf(CliqueKey key, CliqueMember self, Bootstrap meeting) {
    Side side = new Side(key, key.rankOf(self));
    if (meeting.nranks() != key.size() || meeting.rank() != side.rank()) {
      throw CollectiveException.invalid(
          side
              + " came to a meeting as rank "
              + meeting.rank()
              + " of "
              + meeting.nranks()
              + "; only members meet, by their rank");
    }
    return side;
  }

  private CliqueLease acquire(Side side, Bootstrap meeting, BootstrapRounds rounds) {
    CachedCommunicator[] held = new CachedCommunicator[1];
    boolean all;
    try {
      List<byte[]> votes =
          rounds.exchange(
              "clique",
              () -> {
                held[0] = table.lease(side);
                return CliqueVote.of(held[0]);
              });
      all = CliqueVote.isUnanimous(votes);
    } catch (RuntimeException e) {
      release(held[0]);
      throw e;
    }
    if (all) {
      table.countReuse();
      return new CliqueLease(side.key(), held[0], true);
    }
    if (held[0] != null) {
      table.evict(side, held[0]);
      held[0].release();
    }
    return create(side, meeting, rounds);
  }

  private static void release(CachedCommunicator cached) {
    if (cached != null) {
      cached.release();
    }
  }

  private CliqueLease create(Side side, Bootstrap meeting, BootstrapRounds rounds) {
    CachedCommunicator[] made = new CachedCommunicator[1];
    CachedCommunicator[] first = new CachedCommunicator[1];
    List<byte[]> votes;
    try {
      votes =
          rounds.exchange(
              "first",
              () -> {
                made[0] = new CachedCommunicator(factory.create(meeting, options));
                table.countCreated();
                first[0] = table.insertOrLease(side, made[0]);
                return CliqueVote.of(first[0]);
              });
    } catch (RuntimeException e) {
      discard(side, made[0], first[0]);
      throw e;
    }
    return settle(side, made[0], first[0], CliqueVote.isUnanimous(votes));
  }

  /** Whether the communicator made here is the one, lost everywhere, or stays a private one. */
  private CliqueLease settle(
      Side side, CachedCommunicator made, CachedCommunicator first, boolean unanimous) {
    if (first == made) {
      return new CliqueLease(side.key(), made, false);
    }
    table.countDiscarded();
    made.retire();
    if (unanimous) {
      made.release();
      return new CliqueLease(side.key(), first, false);
    }
    first.release();
    return new CliqueLease(side.key(), made, false);
  }

  private void discard(Side side, CachedCommunicator made, CachedCommunicator first) {
    if (first != made) {
      release(first);
    }
    if (made != null) {
      made.communicator().abort("another member gave up on " + side.key());
      table.evict(side, made);
      made.retire();
      made.release();
    }
  }

  /**
   * Acquires all, in the order of {@link CliqueRequests#ordered}.
   *
   * @throws CollectiveException when one cannot be acquired; the leases before it are closed then
   */
  public List<CliqueLease> acquireAll(
      CliqueRequests requests, CliqueMember self, Meetings meetings) {
    List<CliqueLease> leases = new ArrayList<>();
    try {
      for (CliqueKey key : requests.ordered()) {
        try (Bootstrap meeting = meetings.open(key, key.rankOf(self))) {
          leases.add(acquire(key, self, meeting));
        }
      }
      return leases;
    } catch (IOException e) {
      closeAll(leases);
      throw new CollectiveException(
          Kind.IO, List.of(), self + " cannot meet the other members of its cliques: " + e, e);
    } catch (RuntimeException e) {
      closeAll(leases);
      throw e;
    }
  }

  private static void closeAll(List<CliqueLease> leases) {
    leases.forEach(CliqueLease::close);
  }

  /**
   * Gives up a clique's communicator if no side uses it. Each member calls this with its end of the
   * same bootstrap.
   *
   * @return whether all agreed; else all keep theirs
   */
  public boolean evict(CliqueKey key, CliqueMember self, Bootstrap meeting) {
    Side side = sideOf(key, self, meeting);
    BootstrapRounds rounds = new BootstrapRounds(meeting, Deadline.after(options.timeout()));
    List<byte[]> votes =
        rounds.exchange("evict", () -> new byte[] {(byte) (table.isIdle(side) ? 1 : 0)});
    boolean agreed = votes.stream().allMatch(vote -> vote[0] == 1);
    if (agreed) {
      table.evict(side);
    }
    return agreed;
  }

  /**
   * Gives up a communicator because all its members do; how they agreed on that is theirs. It is
   * closed with this lease, or with the last one if there are others.
   *
   * @param lease ends here
   */
  public void retire(CliqueLease lease, CliqueMember self) {
    table.evict(new Side(lease.key(), lease.key().rankOf(self)), lease.cached());
    lease.close();
  }

  /**
   * A life of a process has ended: all communicators it is part of are aborted, at the same time
   * because an abort may have to wait for work on another one, and then erased. Cliques with it are
   * refused from now on, also those that are just being made.
   */
  public void fail(String process, String incarnation, String reason) {
    List<CachedCommunicator> hit = table.fail(process, incarnation, reason);
    ConcurrentAborts.run(hit, process + "@" + incarnation + " failed: " + reason);
  }

  /** Cliques whose communicators nobody here uses, the longest unused first. */
  public List<CliqueKey> idle() {
    return table.idle();
  }

  /** The counters as they are now. */
  public CliqueStatistics statistics() {
    return table.statistics();
  }

  /** Closes all communicators; those still leased when their last lease ends. */
  @Override
  public void close() {
    slow.close();
    table.clear().forEach(CachedCommunicator::retire);
  }
}
