package io.weft.collectives.clique;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.clique.CliqueTable.CachedCommunicator;
import io.weft.collectives.clique.CliqueTable.CliqueSide;
import io.weft.device.Deadline;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the communicators of cliques. For every acquisition the members of a clique, and no other
 * process, hold a rendezvous through their own bootstrap. A member that fails still takes part and
 * sends its failure. The members reuse a communicator only when all have the same one; otherwise
 * all create a new one. So a member that lost its communicator never leaves the others with an
 * incomplete one.
 *
 * <p>Communicators are created outside of locks. Two acquisitions of one clique may race. The
 * members then compare which communicator was first at each of them. If it is the same one, the
 * other is discarded everywhere; if not, each acquisition keeps its own for its lease.
 *
 * <p>Thread-safe. Owns its communicators and a daemon thread for warnings, until it is closed.
 */
public final class CommunicatorCache implements AutoCloseable {
  private static final Duration WARN_AFTER = Duration.ofSeconds(10);

  private final CommunicatorFactory factory;
  private final CommunicatorOptions options;
  private final CliqueTable table = new CliqueTable();
  private final SlowWarning slow;

  /**
   * Opens a bootstrap between the members of a clique, a new one each time; the cache closes it.
   */
  @FunctionalInterface
  public interface BootstrapOpener {
    /** Opens this member's end. */
    Bootstrap open(CliqueKey key, int rank) throws IOException;
  }

  /** Creates an empty cache. */
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
   * Acquires a communicator of all members. Each member calls this with its end of the same
   * bootstrap.
   *
   * @param bootstrap used for this acquisition only; the caller closes it
   * @throws CollectiveException on all members that arrived, when a member failed, is known to have
   *     ended, or did not arrive
   */
  public CliqueLease acquire(CliqueKey key, CliqueMember self, Bootstrap bootstrap) {
    CliqueSide side = sideOf(key, self, bootstrap);
    table.countRequest();
    try (SlowWarning.Watched watched = watch(side)) {
      return acquire(
          side, bootstrap, new BootstrapRounds(bootstrap, Deadline.after(options.timeout())));
    }
  }

  private SlowWarning.Watched watch(CliqueSide side) {
    return slow.watch(options.prefix().ofLane() + "acquiring " + side);
  }

  private static CliqueSide sideOf(CliqueKey key, CliqueMember self, Bootstrap bootstrap) {
    CliqueSide side = new CliqueSide(key, key.rankOf(self));
    if (bootstrap.nranks() != key.size() || bootstrap.rank() != side.rank()) {
      throw CollectiveException.invalid(
          side
              + " joined a rendezvous as rank "
              + bootstrap.rank()
              + " of "
              + bootstrap.nranks()
              + "; only members take part, with their rank in the clique");
    }
    return side;
  }

  private CliqueLease acquire(CliqueSide side, Bootstrap bootstrap, BootstrapRounds rounds) {
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
    return create(side, bootstrap, rounds);
  }

  private static void release(CachedCommunicator cached) {
    if (cached != null) {
      cached.release();
    }
  }

  private CliqueLease create(CliqueSide side, Bootstrap bootstrap, BootstrapRounds rounds) {
    CachedCommunicator[] made = new CachedCommunicator[1];
    CachedCommunicator[] first = new CachedCommunicator[1];
    List<byte[]> votes;
    try {
      votes =
          rounds.exchange(
              "first",
              () -> {
                made[0] = new CachedCommunicator(factory.create(bootstrap, options));
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

  /**
   * Decides what happens to the communicator made here: all use it, all discard it, or it stays
   * private to this lease.
   */
  private CliqueLease settle(
      CliqueSide side, CachedCommunicator made, CachedCommunicator first, boolean unanimous) {
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

  private void discard(CliqueSide side, CachedCommunicator made, CachedCommunicator first) {
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
   * Acquires all requested cliques, in the order of {@link CliqueRequests#ordered}.
   *
   * @throws CollectiveException when one cannot be acquired; the leases before it are closed then
   */
  public List<CliqueLease> acquireAll(
      CliqueRequests requests, CliqueMember self, BootstrapOpener opener) {
    List<CliqueLease> leases = new ArrayList<>();
    try {
      for (CliqueKey key : requests.ordered()) {
        try (Bootstrap bootstrap = opener.open(key, key.rankOf(self))) {
          leases.add(acquire(key, self, bootstrap));
        }
      }
      return leases;
    } catch (IOException e) {
      closeAll(leases);
      throw new CollectiveException(
          Kind.IO,
          List.of(),
          self + " cannot open a rendezvous with the members of its cliques: " + e,
          e);
    } catch (RuntimeException e) {
      closeAll(leases);
      throw e;
    }
  }

  private static void closeAll(List<CliqueLease> leases) {
    leases.forEach(CliqueLease::close);
  }

  /**
   * Evicts a clique's communicator if no member uses it. Each member calls this with its end of the
   * same bootstrap.
   *
   * @return whether all agreed; otherwise all keep theirs
   */
  public boolean evict(CliqueKey key, CliqueMember self, Bootstrap bootstrap) {
    CliqueSide side = sideOf(key, self, bootstrap);
    BootstrapRounds rounds = new BootstrapRounds(bootstrap, Deadline.after(options.timeout()));
    List<byte[]> votes =
        rounds.exchange("evict", () -> new byte[] {(byte) (table.isIdle(side) ? 1 : 0)});
    boolean agreed = votes.stream().allMatch(vote -> vote[0] == 1);
    if (agreed) {
      table.evict(side);
    }
    return agreed;
  }

  /**
   * Evicts a communicator because all its members do; they agree on that outside this class. It is
   * closed with this lease, or with the last one if there are others.
   *
   * @param lease ends here
   */
  public void retire(CliqueLease lease, CliqueMember self) {
    table.evict(new CliqueSide(lease.key(), lease.key().rankOf(self)), lease.cached());
    lease.close();
  }

  /**
   * Handles the end of one incarnation of a process. All communicators with it are aborted and
   * removed. The aborts run concurrently, because one abort may have to wait for work on another
   * communicator. From now on cliques with this incarnation are refused, including those being
   * created.
   */
  public void fail(String process, String incarnation, String reason) {
    List<CachedCommunicator> hit = table.fail(process, incarnation, reason);
    ConcurrentAborts.run(hit, process + "@" + incarnation + " failed: " + reason);
  }

  /** Cliques whose communicators are unused here, the longest unused first. */
  public List<CliqueKey> idle() {
    return table.idle();
  }

  /** The current counters. */
  public CliqueStatistics statistics() {
    return table.statistics();
  }

  /** Closes all communicators; those still leased close with their last lease. */
  @Override
  public void close() {
    slow.close();
    table.clear().forEach(CachedCommunicator::retire);
  }

  /** Aborts communicators concurrently, each on a daemon thread "weft-clique-abort-…". */
  static final class ConcurrentAborts {
    private static final Logger LOG = LoggerFactory.getLogger(ConcurrentAborts.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final AtomicLong THREADS = new AtomicLong();

    private ConcurrentAborts() {}

    /**
     * Returns when all are aborted, or after a timeout. Each is closed once aborted and no longer
     * leased.
     */
    static void run(List<CachedCommunicator> communicators, String reason) {
      List<Thread> threads = new ArrayList<>();
      for (CachedCommunicator cached : communicators) {
        Thread thread =
            new Thread(
                () -> {
                  cached.communicator().abort(reason);
                  cached.retire();
                },
                "weft-clique-abort-" + THREADS.incrementAndGet());
        thread.setDaemon(true);
        thread.start();
        threads.add(thread);
      }
      Deadline deadline = Deadline.after(TIMEOUT);
      threads.forEach(thread -> join(thread, deadline));
    }

    private static void join(Thread thread, Deadline deadline) {
      try {
        thread.join(Math.max(1, deadline.remainingNanos() / 1_000_000L));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      if (thread.isAlive()) {
        LOG.warn("{} has not aborted its communicator after {}", thread.getName(), deadline);
      }
    }
  }

  /** A member's vote: the name of the communicator that it has for a clique, or nothing. */
  static final class CliqueVote {
    private CliqueVote() {}

    static byte[] of(CachedCommunicator cached) {
      String name = cached == null ? "" : cached.communicator().id().name();
      return name.getBytes(StandardCharsets.UTF_8);
    }

    /** Whether all members have the same communicator. */
    static boolean isUnanimous(List<byte[]> votes) {
      String first = text(votes.get(0));
      return !first.isEmpty() && votes.stream().allMatch(vote -> text(vote).equals(first));
    }

    static String text(byte[] vote) {
      return new String(vote, StandardCharsets.UTF_8);
    }
  }

  /** Logs one warning when work takes longer than expected. Uses one daemon thread. */
  static final class SlowWarning implements AutoCloseable {
    private final ScheduledThreadPoolExecutor clock;
    private final Logger log;
    private final Duration after;

    SlowWarning(Logger log, Duration after) {
      this.log = log;
      this.after = after;
      this.clock =
          new ScheduledThreadPoolExecutor(
              1,
              task -> {
                Thread thread = new Thread(task, "weft-clique-watch");
                thread.setDaemon(true);
                return thread;
              });
      clock.setRemoveOnCancelPolicy(true);
      clock.setKeepAliveTime(5, TimeUnit.SECONDS);
      clock.allowCoreThreadTimeOut(true);
    }

    /** Work that is timed until it is closed. */
    interface Watched extends AutoCloseable {
      @Override
      void close();
    }

    Watched watch(String what) {
      try {
        ScheduledFuture<?> warning =
            clock.schedule(() -> warn(what), after.toNanos(), TimeUnit.NANOSECONDS);
        return () -> warning.cancel(false);
      } catch (RejectedExecutionException e) {
        log.debug("{} begins after the cache was closed", what);
        return () -> {};
      }
    }

    private void warn(String what) {
      log.warn("{} has not ended after {} s", what, after.toMillis() / 1000.0);
    }

    @Override
    public void close() {
      clock.shutdownNow();
    }
  }
}
