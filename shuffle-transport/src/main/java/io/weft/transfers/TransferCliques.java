package io.weft.transfers;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.clique.EndedIncarnations;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.transfers.TransferCounter.TransferCounters;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The cliques of this executor. Each has a channel from its first transfer on. Thread-safe. Owns
 * the channels and the reaper of idle ones, which starts with the first channel.
 */
final class TransferCliques implements AutoCloseable {
  private static final Duration LANE_TIMEOUT = Duration.ofSeconds(5);
  private static final Duration MAX_REAP_PERIOD = Duration.ofSeconds(1);
  private static final int REAPS_PER_IDLE_TIME = 4;

  private final EndedIncarnations<RuntimeException> failed = new EndedIncarnations<>();

  private final Map<CliqueKey, CliqueChannel> channels = new LinkedHashMap<>();
  private final String executor;
  private final CliqueAccess access;
  private final TransferCounters counters;
  private final Duration timeout;
  private final IdleReaper reaper;
  private boolean closed;

  /**
   * Creates an object without cliques.
   *
   * @param buffers that are freed after they were idle as long as a clique
   * @param gpu the memory of this executor's GPU, if it has one
   */
  TransferCliques(
      String executor,
      CliqueAccess access,
      TransferCounters counters,
      TransferBuffers buffers,
      Optional<ReceiveMemory> gpu,
      TransferOptions options) {
    this.executor = executor;
    this.access = access;
    this.counters = counters;
    this.timeout = options.deadline();
    this.reaper =
        new IdleReaper(executor, reapPeriod(options), () -> checks(buffers, gpu, options.idle()));
  }

  /**
   * The end that checks first waits for the other end's check. So the checks are frequent, and well
   * within the deadline, after which the end would abort the communicator instead of giving it up.
   */
  private static Duration reapPeriod(TransferOptions options) {
    long shorter = Math.min(options.idle().toNanos(), options.deadline().toNanos());
    return Duration.ofNanos(Math.min(MAX_REAP_PERIOD.toNanos(), shorter / REAPS_PER_IDLE_TIME));
  }

  private synchronized List<Runnable> checks(
      TransferBuffers buffers, Optional<ReceiveMemory> gpu, Duration idle) {
    List<Runnable> checks = new ArrayList<>();
    channels.values().forEach(channel -> checks.add(() -> channel.retireIfIdle(idle)));
    checks.add(() -> buffers.freeIdle(idle));
    gpu.ifPresent(memory -> checks.add(memory::reclaim));
    return checks;
  }

  /** Adds transfers to their clique, or fails them. */
  void add(CliqueKey key, List<PreparedTransfer> transfers) {
    CliqueChannel channel;
    try {
      channel = channel(key);
    } catch (RuntimeException | Error e) {
      transfers.forEach(transfer -> transfer.endBecause(e));
      counters.add(TransferCounter.FAILED, transfers.size());
      if (e instanceof Error error) {
        throw error;
      }
      return;
    }
    channel.add(transfers);
  }

  private synchronized CliqueChannel channel(CliqueKey key) {
    if (closed) {
      throw new IllegalStateException("the transfers of executor " + executor + " were closed");
    }
    for (CliqueMember member : key.members()) {
      Optional<RuntimeException> cause = failed.cause(member.process(), member.incarnation());
      if (cause.isPresent()) {
        throw cause.get();
      }
    }
    return channels.computeIfAbsent(key, this::open);
  }

  /** The caller holds the monitor. */
  private CliqueChannel open(CliqueKey key) {
    reaper.begin();
    CliqueMember self =
        key.members().stream()
            .filter(member -> member.process().equals(executor))
            .findFirst()
            .orElseThrow();
    CliqueMember peer = key.members().get(1 - key.rankOf(self));
    Lane lane =
        HostLane.open(
            "transfers-%s-%s".formatted(self.device(), peer.process() + "-" + peer.device()),
            LANE_TIMEOUT,
            "[executor " + executor + "] ",
            Lane.Priority.HIGHEST);
    return new CliqueChannel(key, self, access, counters, lane, timeout);
  }

  /** Aborts the current round of a clique. */
  void abort(CliqueKey key, String reason) {
    known(key).ifPresent(channel -> channel.abort(reason));
  }

  /** Aborts the current round of a clique if it waits for the peer to come. */
  void abortWait(CliqueKey key, String reason) {
    known(key).ifPresent(channel -> channel.abortWait(reason));
  }

  private synchronized Optional<CliqueChannel> known(CliqueKey key) {
    return Optional.ofNullable(channels.get(key));
  }

  /** Fails the present and future cliques with an incarnation of a process. */
  void fail(String process, String incarnation, String reason) {
    List<CliqueChannel> hit = new ArrayList<>();
    TransferException cause =
        new TransferException(
            "executor " + process + " (" + incarnation + ") has ended: " + reason);
    synchronized (this) {
      failed.add(process, incarnation, cause);
      channels
          .values()
          .removeIf(
              channel -> {
                boolean includes = channel.includes(process, incarnation);
                if (includes) {
                  hit.add(channel);
                }
                return includes;
              });
    }
    Runnable aborts = access.fail(process, incarnation, reason);
    hit.forEach(channel -> channel.end(cause));
    aborts.run();
    hit.forEach(CliqueChannel::close);
  }

  /** Ends all channels first, then waits for each. */
  @Override
  public void close() {
    List<CliqueChannel> all;
    synchronized (this) {
      closed = true;
      all = List.copyOf(channels.values());
      channels.clear();
    }
    reaper.close();
    IllegalStateException cause =
        new IllegalStateException("the transfers of executor " + executor + " were closed");
    all.forEach(channel -> channel.end(cause));
    all.forEach(CliqueChannel::close);
  }

  /**
   * Runs checks for idle cliques periodically, from {@link #begin} to {@link #close}, also after a
   * check has failed. Owns the thread "weft-transfer-idle-…", which starts with the first check.
   * Thread-safe.
   */
  static final class IdleReaper implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(IdleReaper.class);
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(5);

    private final String executor;
    private final Duration pause;
    private final Supplier<List<Runnable>> checks;
    private final ScheduledThreadPoolExecutor thread;

    @GuardedBy("this")
    private boolean begun;

    @GuardedBy("this")
    private boolean closed;

    /** Used by the thread only. */
    private boolean failed;

    /**
     * Creates a reaper that does not run yet.
     *
     * @param executor id for the name of the thread
     * @param pause between two runs
     * @param checks gives the checks of a run, each of them quick; only the first exception is
     *     logged
     */
    IdleReaper(String executor, Duration pause, Supplier<List<Runnable>> checks) {
      this.executor = executor;
      this.pause = pause;
      this.checks = checks;
      this.thread =
          new ScheduledThreadPoolExecutor(
              1,
              task -> {
                Thread named = new Thread(task, "weft-transfer-idle-" + executor);
                named.setDaemon(true);
                return named;
              });
    }

    /** Starts the runs, unless they were started before or this is closed. */
    synchronized void begin() {
      if (!begun && !closed) {
        begun = true;
        ScheduledFuture<?> unused =
            thread.scheduleWithFixedDelay(
                () -> run(() -> checks.get().forEach(this::run)),
                pause.toNanos(),
                pause.toNanos(),
                TimeUnit.NANOSECONDS);
      }
    }

    /** Catches all exceptions, because the scheduler drops a task that throws. */
    private void run(Runnable check) {
      try {
        check.run();
      } catch (RuntimeException | Error e) {
        if (!failed) {
          LOG.warn(
              "[executor {}] a check for idle cliques failed; the checks go on, and later failures"
                  + " are not logged",
              executor,
              e);
        }
        failed = true;
      }
    }

    /**
     * Ends the runs and waits for one that is under way, because it may be freeing memory of an
     * arena that is closed next. It is not interrupted: that would close the files it works with.
     */
    @Override
    public void close() {
      synchronized (this) {
        closed = true;
      }
      thread.shutdown();
      try {
        if (!thread.awaitTermination(CLOSE_TIMEOUT.toNanos(), TimeUnit.NANOSECONDS)) {
          LOG.warn("[executor {}] a check for idle cliques does not end in time", executor);
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
