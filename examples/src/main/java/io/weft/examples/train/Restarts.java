package io.weft.examples.train;

import io.weft.spark.feed.FeedFunction;
import io.weft.spark.feed.RankFailedException;
import io.weft.spark.feed.WeftFeed;
import java.util.List;
import org.apache.spark.SparkException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs a training again when Spark has given it up. A rank that fails, as with its executor, makes
 * Spark repeat the stage on the rows that were exchanged; this is for what that does not help, such
 * as too many failures one after the other. Either way the ranks begin at the last checkpoint. A
 * function that failed of itself would do so again, and is not run again. Stateless.
 */
public final class Restarts {
  private static final Logger LOG = LoggerFactory.getLogger(Restarts.class);

  private Restarts() {}

  /**
   * Trains, at most so many times again.
   *
   * @return the reports of the run that came to the end
   * @throws RankFailedException when the function of a rank failed of itself; at once
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
        LOG.warn("The training failed and begins again at its last checkpoint", e);
      }
    }
  }
}
