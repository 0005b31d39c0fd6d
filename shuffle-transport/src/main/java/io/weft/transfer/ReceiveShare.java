package io.weft.transfer;

import static io.weft.metrics.ExchangeCounter.HELD_BACK_NANOS;
import static io.weft.metrics.ExchangeCounter.REQUESTS_HELD_BACK;

import io.weft.metrics.ExchangeCounters;

/**
 * What one reader has taken of its executor's {@link ReceiveBudget}, and for how long its next
 * request has been held back by what the others have. For the reader's thread.
 */
final class ReceiveShare implements AutoCloseable {
  private final ReceiveBudget budget;
  private final ExchangeCounters counters;
  private long bytes;
  private boolean heldBack;
  private long since;

  /** Starts with nothing. */
  ReceiveShare(ReceiveBudget budget, ExchangeCounters counters) {
    this.budget = budget;
    this.counters = counters;
  }

  /**
   * Takes bytes for a request.
   *
   * @param waitable whether the reader has something under way, and asks again when that has come
   * @return whether it may go out
   */
  boolean take(long wanted, boolean waitable) {
    if (waitable && !budget.take(wanted)) {
      holdBack();
      return false;
    }
    if (!waitable) {
      budget.force(wanted);
    }
    bytes += wanted;
    letGo();
    return true;
  }

  private void holdBack() {
    if (!heldBack) {
      heldBack = true;
      since = System.nanoTime();
      counters.increment(REQUESTS_HELD_BACK);
    }
  }

  private void letGo() {
    if (heldBack) {
      heldBack = false;
      counters.add(HELD_BACK_NANOS, System.nanoTime() - since);
    }
  }

  /** A request turned out to hold so much more, or less if it is negative. */
  void change(long more) {
    budget.force(more);
    bytes += more;
  }

  /** Bytes taken now. */
  long bytes() {
    return bytes;
  }

  /** Gives all back. */
  @Override
  public void close() {
    change(-bytes);
    letGo();
  }
}
