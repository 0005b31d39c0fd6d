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
 * outputs for that time and still uses memory, it reports that, because it may be of shuffles that
 * ended. A report may have no effect, for example if the driver collected shortly before. So it
 * reports again, each time after twice the time. For the maintenance thread.
 */
final class IdleMemory {
  /** The longest time between two reports, as a multiple of the idle time. */
  private static final int MAX_PAUSE = 16;

  private final Duration time;
  private final SharedArena arena;
  private final HostPeers peers;
  private final ExchangeCounters counters;
  private final IntSupplier openReaders;
  private final LongSupplier clock;
  private volatile Runnable report = () -> {};
  private long seen = -1;
  private long idleSince;
  private long pauseNanos;

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
      pauseNanos = time.toNanos();
    } else if (clock.getAsLong() - idleSince >= pauseNanos && arena.statistics().usedBytes() > 0) {
      idleSince = clock.getAsLong();
      pauseNanos = Math.min(2 * pauseNanos, MAX_PAUSE * time.toNanos());
      report.run();
    }
  }
}
