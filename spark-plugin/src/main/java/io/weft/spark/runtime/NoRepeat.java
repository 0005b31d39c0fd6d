package io.weft.spark.runtime;

/**
 * Marks an exception whose cause a repeat of the task would meet again, such as a setting. A feed
 * whose rank fails with it is not repeated.
 */
public interface NoRepeat {
  /** Whether an exception or one of its causes is marked. */
  static boolean isIn(Throwable error) {
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (each instanceof NoRepeat) {
        return true;
      }
    }
    return false;
  }
}
