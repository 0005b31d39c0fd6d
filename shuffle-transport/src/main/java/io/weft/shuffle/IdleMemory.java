package io.weft.shuffle;

import static io.weft.shuffle.peer.ExchangeCounter.OUTPUTS_PUBLISHED;

import io.weft.memory.SharedArena;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.store.HostPeers;
import java.time.Duration;
import java.util.function.IntSupplier;
import java.util.function.LongSupplier;

/**
 * Gives memory back that was unused for some time. If the executor has neither published nor read
 * outputs for that time and still uses memory, it reports that once, because it may be of shuffles
 * that ended. For the maintenance thread.
 */
final class IdleMemory {
  private final Duration time;
  private final SharedArena arena;
  private final HostPeers peers;
  private final ExchangeCounters counters;
  private final IntSupplier openReaders;
  private final LongSupplier clock;
  private volatile Runnable report = () -> {};
  private long seen = -1;
  private long idleSince;
  private boolean reported;

  /**
   * Starts as if the executor had just worked.
   *
   * @param time zero to keep all memory
   * @param counters of the exchange, whose published outputs are its work
   * @param openReaders the number of open readers
   * @param clock a clock such as {@link System#nanoTime}
   */
  IdleMemory(
      Duration time,
      SharedArena arena,
      HostPeers peers,
      ExchangeCounters counters,
      IntSupplier openReaders,
      LongSupplier clock) {
    this.time = time;
    this.arena = arena;
    this.peers = peers;
    this.counters = counters;
    this.openReaders = openReaders;
    this.clock = clock;
  }

  /** Sets the action that reports an idle executor with outputs; must not block. */
  void onIdle(Runnable action) {
    report = action;
  }

  /** Runs periodically. */
  void giveBack() {
    peers.unmapDeleted();
    if (time.isZero()) {
      return;
    }
    arena.freeIdle(time);
    peers.unmapIdle(time);
    long published = counters.get(OUTPUTS_PUBLISHED);
    if (published != seen || openReaders.getAsInt() > 0) {
      seen = published;
      idleSince = clock.getAsLong();
      reported = false;
    } else if (!reported
        && clock.getAsLong() - idleSince >= time.toNanos()
        && arena.statistics().usedBytes() > 0) {
      reported = true;
      report.run();
    }
  }
}
