package io.weft.spark.rapids;

/** Limits the bytes of requested tables that have not arrived. Thread-safe. */
final class InflightBudget {
  private final long limit;
  private long inflight;

  /** Creates a budget. A table that is larger than the limit is requested alone. */
  InflightBudget(long limit) {
    this.limit = limit;
  }

  /** Takes bytes of the budget if they fit. */
  synchronized boolean tryTake(long bytes) {
    if (inflight > 0 && inflight + bytes > limit) {
      return false;
    }
    inflight += bytes;
    return true;
  }

  synchronized void giveBack(long bytes) {
    inflight = Math.max(0, inflight - bytes);
  }

  synchronized long bytes() {
    return inflight;
  }
}
