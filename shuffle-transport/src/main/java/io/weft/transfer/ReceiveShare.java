package io.weft.transfer;

import static io.weft.metrics.ExchangeCounter.HELD_BACK_NANOS;
import static io.weft.metrics.ExchangeCounter.REQUESTS_HELD_BACK;

import io.weft.metrics.ExchangeCounters;

/**
 * The bytes that one reader has reserved from its executor's {@link ReceiveBudget}. Also measures
 * how long its next request waits for the budget. For the reader's thread.
 */
final class ReceiveShare implements AutoCloseable {
  private final ReceiveBudget budget;
  private final ExchangeCounters counters;
  private long bytes;
  private boolean heldBack;
  private long since;

  /** Starts with no bytes. */
  ReceiveShare(ReceiveBudget budget, ExchangeCounters counters) {
    this.budget = budget;
    this.counters = counters;
  }

  /**
   * Reserves bytes for a request.
   *
   * @param waitable whether the reader has outstanding requests and retries after one of them
   * @return whether the request may be sent
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
    endHoldBack();
    return true;
  }

  private void holdBack() {
    if (!heldBack) {
      heldBack = true;
      since = System.nanoTime();
      counters.increment(REQUESTS_HELD_BACK);
    }
  }

  private void endHoldBack() {
    if (heldBack) {
      heldBack = false;
      counters.add(HELD_BACK_NANOS, System.nanoTime() - since);
    }
  }

  /** Changes the reserved bytes of a request by this number, which may be negative. */
  void change(long more) {
    budget.force(more);
    bytes += more;
  }

  /** The bytes that are reserved now. */
  long bytes() {
    return bytes;
  }

  /** Returns all bytes. */
  @Override
  public void close() {
    change(-bytes);
    endHoldBack();
  }
}
