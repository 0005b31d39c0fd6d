package io.weft.spark.rapids;

/** How many bytes of tables are asked for and have not arrived. Thread-safe. */
final class InflightBudget {
  private final long limit;
  private long inflight;

  /** A budget of so many bytes; a table that is larger than all of it goes alone. */
  InflightBudget(long limit) {
    this.limit = limit;
  }

  /** Takes so many bytes if they fit. */
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
