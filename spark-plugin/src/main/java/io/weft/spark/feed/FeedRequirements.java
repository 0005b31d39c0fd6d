package io.weft.spark.feed;

import io.weft.spark.columns.ColumnarSchema;
import io.weft.spark.config.Activation;
import io.weft.spark.feed.arrow.TensorColumn;
import io.weft.spark.shuffle.WeftShuffleManager;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.Utils;

/** Checks the conditions of a feed before it moves its first row. Stateless. */
final class FeedRequirements {
  /** The column of a row's rank, after the feed's own columns. */
  static final String RANK_COLUMN = "weft.rank";

  private FeedRequirements() {}

  /**
   * Checks all conditions.
   *
   * @throws IllegalStateException if the application cannot run feeds
   * @throws IllegalArgumentException if the data cannot be fed
   */
  static void check(FeedSpec spec) {
    checkApplication(SparkEnv.get());
    checkNames(spec);
    Optional<String> unsupported = ColumnarSchema.unsupportedReason(spec.schema());
    if (unsupported.isPresent()) {
      throw new IllegalArgumentException(
          "a feed cannot carry " + unsupported.get() + "; cast it or leave it out");
    }
    // Checks a column's metadata.
    List<TensorColumn> unused = TensorCheck.columns(spec.schema());
  }

  private static void checkApplication(SparkEnv env) {
    SparkConf conf = env.conf();
    if (!(env.shuffleManager() instanceof WeftShuffleManager) || !Activation.isActive(conf)) {
      throw new IllegalStateException(
          ("Feeds need Weft's plugin: is spark.plugins set to %s, and does the log say that Weft"
                  + " stays off?")
              .formatted(Activation.PLUGIN));
    }
    // Spark itself would detect this only after the rows have been exchanged.
    if (Utils.isDynamicAllocationEnabled(conf)) {
      throw new IllegalStateException(
          "A feed's ranks run in a barrier stage, which Spark does not run with dynamic allocation:"
              + " set spark.dynamicAllocation.enabled to false and ask for as many executors as the"
              + " ranks need, by spark.executor.instances");
    }
  }

  private static void checkNames(FeedSpec spec) {
    StructType schema = spec.schema();
    if (schema.isEmpty()) {
      throw new IllegalArgumentException("a feed needs at least one column");
    }
    if (spec.byKey() && List.of(schema.fieldNames()).contains(RANK_COLUMN)) {
      throw new IllegalArgumentException(
          "a column of a feed by key cannot be called " + RANK_COLUMN);
    }
    Set<String> names = new HashSet<>();
    for (String name : schema.fieldNames()) {
      if (!names.add(name)) {
        throw new IllegalArgumentException("two columns of a feed are called " + name);
      }
    }
  }
}
