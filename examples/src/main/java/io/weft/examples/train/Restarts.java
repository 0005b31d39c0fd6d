package io.weft.examples.train;

import io.weft.spark.feed.FeedFunction;
import io.weft.spark.feed.RankFailedException;
import io.weft.spark.feed.WeftFeed;
import java.util.List;
import org.apache.spark.SparkException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Restarts a training that Spark has aborted. When a rank is lost, for example with its executor,
 * Spark repeats the stage on the exchanged rows. This class handles the other failures, such as too
 * many lost ranks in a row. In both cases the ranks begin at the last checkpoint. A training whose
 * own function throws is not restarted, because it would throw again. Stateless.
 */
public final class Restarts {
  private static final Logger LOG = LoggerFactory.getLogger(Restarts.class);

  private Restarts() {}

  /**
   * Trains, with a limited number of restarts.
   *
   * @return the reports of the run that finished
   * @throws RankFailedException if the function of a rank throws; without a restart
   */
  public static <T> List<T> train(WeftFeed feed, FeedFunction<T> function, int restarts)
      throws Exception {
    for (int left = restarts; ; left--) {
      try {
        return feed.train(function);
      } catch (Exception e) {
        if (left == 0 || !(e instanceof SparkException)) {
          throw e;
        }
        LOG.warn("The training failed and restarts at its last checkpoint", e);
      }
    }
  }
}
