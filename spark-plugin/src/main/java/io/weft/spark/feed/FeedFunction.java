package io.weft.spark.feed;

import java.io.Serializable;

/**
 * The program's function that runs on each rank. It is serialized to the executors.
 *
 * @param <T> its result, serializable
 */
@FunctionalInterface
public interface FeedFunction<T> extends Serializable {
  /**
   * Runs on the thread of the rank's task. An exception fails all ranks; Spark then repeats the
   * barrier stage as often as it is configured to.
   */
  T run(FeedTask task) throws Exception;
}
