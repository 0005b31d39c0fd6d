package io.weft.spark.feed;

import java.io.Serializable;

/**
 * What a rank does with its feed. Travels to the executors.
 *
 * @param <T> its result, serializable
 */
@FunctionalInterface
public interface FeedFunction<T> extends Serializable {
  /**
   * Runs on the thread of the rank's task. An exception fails all ranks; Spark then runs the
   * barrier stage again, as often as it is configured to.
   */
  T run(FeedTask task) throws Exception;
}
