package io.weft.spark.feed;

import io.weft.shuffle.peer.PathRules;
import io.weft.spark.config.PathSettings;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Decides whether the rows of a feed can move from GPU to GPU. Stateless. */
final class GpuRoute {
  private static final Logger LOG = LoggerFactory.getLogger(GpuRoute.class);

  private GpuRoute() {}

  /** Why they cannot, as far as the driver knows before the first row moves. */
  static Optional<String> obstacle(FeedSpec spec, SparkConf conf) {
    try {
      if (GpuBatchLayout.of(spec).bytes() == 0) {
        return Optional.of("its tensors have no elements");
      }
    } catch (IllegalArgumentException e) {
      return Optional.of(e.getMessage());
    }
    PathRules rules = PathSettings.rules(conf);
    return rules.encrypted() && !rules.unencryptedNccl()
        ? Optional.of(
            "Spark encrypts its network and NCCL does not, see "
                + WeftSettings.NCCL_ALLOW_UNENCRYPTED)
        : Optional.empty();
  }

  /**
   * Why they cannot, as the map tasks found: in that case their rows are on the host.
   *
   * @param registered output id of each map task
   */
  static Optional<String> obstacle(List<MapRows> reports, long... registered) {
    Set<Long> outputs = Arrays.stream(registered).boxed().collect(Collectors.toSet());
    return reports.stream()
        .filter(report -> outputs.contains(report.mapId()))
        .map(MapRows::obstacle)
        .filter(obstacle -> !obstacle.isEmpty())
        .findFirst();
  }

  /** Logs why batches of a query are copied to the host before they are dealt, if they are. */
  static void logCopies(FeedInput input, FeedSpec spec) {
    if (input.batches()) {
      GpuTables.inputObstacle(spec, input.keys())
          .ifPresent(
              why ->
                  LOG.info("Map tasks of a feed copy batches on GPUs to the host first: {}", why));
    }
  }

  /** Logs a reason once, and counts it for the UI. */
  static void log(String reason) {
    ((WeftShuffleManager) SparkEnv.get().shuffleManager()).hostFeeds().record(reason);
  }
}
