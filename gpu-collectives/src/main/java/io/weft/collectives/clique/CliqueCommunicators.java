package io.weft.collectives.clique;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Deadline;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates the communicators of cliques, and aborts those with a process that has ended. For every
 * acquisition the members of a clique, and no other process, hold a rendezvous through their own
 * bootstrap. A member that fails still takes part and sends its failure, so that no other member
 * waits for it or keeps an incomplete communicator.
 *
 * <p>Communicators are created outside of locks. Each belongs to one lease, which closes it.
 *
 * <p>Thread-safe. Owns a daemon thread for warnings, until it is closed.
 */
public final class CliqueCommunicators implements AutoCloseable {
  private static final Duration WARN_AFTER = Duration.ofSeconds(10);

  private final CommunicatorFactory factory;
  private final CommunicatorOptions options;
  private final SlowWarning slow;

  /** Guards the fields below. No communicator is created, aborted or closed under it. */
  private final Object lock = new Object();

  private final Set<CliqueLease> open = new LinkedHashSet<>();

  private final EndedIncarnations<String> failed = new EndedIncarnations<>();

  private long requests;
  private long created;
  private long ended;
  private long aborted;
  private boolean closed;

  /** Opens a bootstrap between the members of a clique, a new one each time. */
  @FunctionalInterface
  public interface BootstrapOpener {
    /** Opens this member's end; the caller closes it. */
    Bootstrap open(CliqueKey key, int rank) throws IOException;
  }

  /** Starts without communicators. */
  public CliqueCommunicators(CommunicatorFactory factory, CommunicatorOptions options) {
    this(factory, options, LoggerFactory.getLogger(CliqueCommunicators.class), WARN_AFTER);
  }

  CliqueCommunicators(
      CommunicatorFactory factory, CommunicatorOptions options, Logger log, Duration warnAfter) {
    this.factory = factory;
    this.options = options;
    this.slow = new SlowWarning(log, warnAfter);
  }

  /**
   * Creates a communicator of all members. Each member calls this with its end of the same
   * bootstrap.
   *
   * @param bootstrap used for this acquisition only; the caller closes it
   * @throws CollectiveException on all members that arrived, when a member failed, is known to have
   *     ended, or did not arrive
   */
  public CliqueLease acquire(CliqueKey key, CliqueMember self, Bootstrap bootstrap) {
    String side = sideOf(key, self, bootstrap);
    synchronized (lock) {
      requests++;
    }
    try (SlowWarning.Watched watched =
        slow.watch(options.prefix().ofLane() + "acquiring " + side)) {
      return acquire(key, side, bootstrap);
    }
  }

  /** The name of this end, for messages. */
  private static String sideOf(CliqueKey key, CliqueMember self, Bootstrap bootstrap) {
    int rank = key.rankOf(self);
    String side = "rank " + rank + " of " + key;
    if (bootstrap.nranks() != key.size() || bootstrap.rank() != rank) {
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

  private CliqueLease acquire(CliqueKey key, String side, Bootstrap bootstrap) {
    BootstrapRounds rounds = new BootstrapRounds(bootstrap, Deadline.after(options.timeout()));
    // A member that refuses says so before the others create.
    rounds.barrier("clique", () -> requireAlive(key, bootstrap.rank(), side));
    CliqueLease[] made = new CliqueLease[1];
    try {
      rounds.barrier(
          "created",
          () -> {
            made[0] = new CliqueLease(key, factory.create(bootstrap, options), this::ended);
            add(made[0], bootstrap.rank(), side);
          });
      return made[0];
    } catch (RuntimeException e) {
      if (made[0] != null) {
        made[0].communicator().abort("another member gave up on " + key);
        made[0].close();
      }
      throw e;
    }
  }

  /** A member may also fail while the communicator is being created. */
  private void add(CliqueLease lease, int rank, String side) {
    synchronized (lock) {
      created++;
      open.add(lease);
      requireAlive(lease.key(), rank, side);
    }
  }

  private void requireAlive(CliqueKey key, int own, String side) {
    synchronized (lock) {
      if (closed) {
        throw new CollectiveException(
            Kind.CLOSED, List.of(own), "the communicators of " + side + " were closed");
      }
      for (int rank = 0; rank < key.size(); rank++) {
        CliqueMember member = key.members().get(rank);
        Optional<String> reason = failed.cause(member.process(), member.incarnation());
        if (reason.isPresent()) {
          throw new CollectiveException(
              Kind.DEAD,
              List.of(rank),
              "rank " + rank + " of " + key + " is a process that has ended: " + reason.get());
        }
      }
    }
  }

  private void ended(CliqueLease lease) {
    synchronized (lock) {
      ended += open.remove(lease) ? 1 : 0;
    }
  }

  /**
   * Handles the end of one incarnation of a process. From now on cliques with this incarnation are
   * refused, including those being created.
   *
   * @return aborts all communicators with it; the caller runs it. The aborts are concurrent,
   *     because one abort may have to wait for work on another communicator.
   */
  public Runnable fail(String process, String incarnation, String reason) {
    List<CliqueLease> hit;
    synchronized (lock) {
      failed.add(process, incarnation, reason);
      hit = open.stream().filter(lease -> lease.key().includes(process, incarnation)).toList();
      hit.forEach(open::remove);
      aborted += hit.size();
    }
    return () ->
        ConcurrentAborts.run(
            hit.stream().map(CliqueLease::communicator).toList(),
            process + "@" + incarnation + " failed: " + reason);
  }

  /** The current counters. */
  public CliqueStatistics statistics() {
    synchronized (lock) {
      return new CliqueStatistics(requests, created, ended, aborted, open.size());
    }
  }

  /** Refuses new communicators. Each open one ends with its lease. */
  @Override
  public void close() {
    slow.close();
    synchronized (lock) {
      closed = true;
    }
  }

  /** Aborts communicators concurrently, each on a daemon thread "weft-clique-abort-…". */
  static final class ConcurrentAborts {
    private static final Logger LOG = LoggerFactory.getLogger(ConcurrentAborts.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(30);
    private static final AtomicLong THREADS = new AtomicLong();

    private ConcurrentAborts() {}

    /** Returns when all are aborted, or after a timeout. */
    static void run(List<Communicator> communicators, String reason) {
      List<Thread> threads = new ArrayList<>();
      for (Communicator communicator : communicators) {
        Thread thread =
            new Thread(
                () -> communicator.abort(reason), "weft-clique-abort-" + THREADS.incrementAndGet());
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
        log.debug("{} begins after the close", what);
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
