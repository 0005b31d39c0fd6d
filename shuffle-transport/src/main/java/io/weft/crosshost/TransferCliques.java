package io.weft.crosshost;

import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueMember;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The cliques of this executor, each with a channel from the first transfer on. Thread-safe. Owns
 * the channels and, from the first on, a thread that looks for idle ones.
 */
final class TransferCliques implements AutoCloseable {
  private static final Duration LANE_PATIENCE = Duration.ofSeconds(5);
  private static final Duration MOST_BETWEEN_LOOKS = Duration.ofSeconds(1);
  private static final int LOOKS = 4;

  /** Lives of processes that have ended, and why. */
  private final Map<Life, RuntimeException> failed = new LinkedHashMap<>();

  private final Map<CliqueKey, CliqueChannel> channels = new LinkedHashMap<>();
  private final String executor;
  private final CliqueAccess access;
  private final TransferCounters counters;
  private final Duration patience;
  private final IdleLooks looks;
  private boolean closed;

  /** A life of a process. */
  private record Life(String process, String incarnation) {}

  /** No cliques yet. */
  TransferCliques(
      String executor, CliqueAccess access, TransferCounters counters, TransferOptions options) {
    this.executor = executor;
    this.access = access;
    this.counters = counters;
    this.patience = options.deadline();
    this.looks = new IdleLooks(executor, betweenLooks(options), () -> looks(options.idle()));
  }

  /**
   * Of two ends, the one that looks first waits for the other's look: hence often, and well within
   * its deadline, after which it would break the communicator instead of giving it up.
   */
  private static Duration betweenLooks(TransferOptions options) {
    long shorter = Math.min(options.idle().toNanos(), options.deadline().toNanos());
    return Duration.ofNanos(Math.min(MOST_BETWEEN_LOOKS.toNanos(), shorter / LOOKS));
  }

  private synchronized List<Runnable> looks(Duration idle) {
    return channels.values().stream()
        .map(channel -> (Runnable) () -> channel.retireIfIdle(idle))
        .toList();
  }

  /** Gives transfers to their clique, or fails them. */
  void add(CliqueKey key, List<PreparedTransfer> transfers) {
    CliqueChannel channel;
    try {
      channel = channel(key);
    } catch (RuntimeException e) {
      transfers.forEach(transfer -> transfer.endBecause(e));
      counters.add(TransferCounter.FAILED, transfers.size());
      return;
    }
    channel.add(transfers);
  }

  private synchronized CliqueChannel channel(CliqueKey key) {
    if (closed) {
      throw new IllegalStateException("the transfers of executor " + executor + " were closed");
    }
    for (CliqueMember member : key.members()) {
      RuntimeException cause = failed.get(new Life(member.process(), member.incarnation()));
      if (cause != null) {
        throw cause;
      }
    }
    return channels.computeIfAbsent(key, this::open);
  }

  /** Under the monitor. */
  private CliqueChannel open(CliqueKey key) {
    looks.begin();
    CliqueMember self =
        key.members().stream()
            .filter(member -> member.process().equals(executor))
            .findFirst()
            .orElseThrow();
    CliqueMember peer = key.members().get(1 - key.rankOf(self));
    Lane lane =
        HostLane.open(
            "transfers-%s-%s".formatted(self.device(), peer.process() + "-" + peer.device()),
            LANE_PATIENCE,
            "[executor " + executor + "] ",
            Lane.Priority.HIGHEST);
    return new CliqueChannel(key, self, access, counters, lane, patience);
  }

  /** Breaks what is under way in a clique. */
  void abort(CliqueKey key, String reason) {
    CliqueChannel channel;
    synchronized (this) {
      channel = channels.get(key);
    }
    if (channel != null) {
      channel.abort(reason);
    }
  }

  /** Fails all cliques of a life of a process, and those that would come. */
  void fail(String process, String incarnation, String reason) {
    List<CliqueChannel> hit = new ArrayList<>();
    TransferException cause =
        new TransferException("executor " + process + " (" + incarnation + ") is gone: " + reason);
    synchronized (this) {
      failed.put(new Life(process, incarnation), cause);
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
    hit.forEach(channel -> channel.end(cause));
    access.fail(process, incarnation, reason);
    hit.forEach(CliqueChannel::close);
  }

  /** First all are told to end, then each is waited for. */
  @Override
  public void close() {
    List<CliqueChannel> all;
    synchronized (this) {
      closed = true;
      all = List.copyOf(channels.values());
      channels.clear();
    }
    looks.close();
    IllegalStateException cause =
        new IllegalStateException("the transfers of executor " + executor + " were closed");
    all.forEach(channel -> channel.end(cause));
    all.forEach(CliqueChannel::close);
  }
}
