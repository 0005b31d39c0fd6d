package io.weft.spark.driver;

import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.storage.BlockManagerId;
import scala.collection.Iterator;

/**
 * Unregisters map outputs of ended executors for an application with an external shuffle service.
 * Spark keeps them there until a fetch fails, because the service could still have them. Each ended
 * executor would then cost an attempt of a stage.
 *
 * <p>Only outputs that the executor served itself are unregistered: those of Weft. The location of
 * the others has the service's port. Called on the thread of Spark's listeners.
 */
public final class EndedOutputsListener extends SparkListener {
  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    SparkEnv env = SparkEnv.get();
    if (env == null || !(env.mapOutputTracker() instanceof MapOutputTrackerMaster tracker)) {
      return;
    }
    int servicePort = env.blockManager().externalShuffleServicePort();
    Iterator<ShuffleStatus> shuffles = tracker.shuffleStatuses().valuesIterator();
    while (shuffles.hasNext()) {
      shuffles
          .next()
          .removeOutputsByFilter(location -> isGone(location, removed.executorId(), servicePort));
    }
    // Executors then ask again where outputs are.
    tracker.incrementEpoch();
  }

  private static boolean isGone(BlockManagerId location, String executor, int servicePort) {
    return location.executorId().equals(executor) && location.port() != servicePort;
  }
}
