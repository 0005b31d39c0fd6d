package io.weft.spark.config;

/**
 * Marks an exception whose cause a repeat of the task would meet again, until a setting or the data
 * change. Spark does not repeat a feed whose rank fails with it.
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
