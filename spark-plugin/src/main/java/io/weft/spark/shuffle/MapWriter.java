package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.spark.compat.MapStatuses;
import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.config.SurviveSettings;
import java.util.Arrays;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;

/**
 * The common end of the writers of all routes. Frees the output of a task that did not publish it.
 * For one task thread.
 *
 * @param <K> type of the records' keys
 * @param <V> type of the records' values
 */
public abstract class MapWriter<K, V> extends ShuffleWriter<K, V> {
  private final BlockKey key;
  private final MapOutputWriter output;
  private Runnable scratch = () -> {};
  private boolean stopped;

  /** Opens the map output of one task attempt. */
  protected MapWriter(
      BlockKey key, int partitions, TaskContext context, ExecutorExchange exchange) {
    this.key = key;
    this.output = exchange.newMapOutput(key, partitions);
    context.addTaskCompletionListener((TaskCompletionListener) ended -> close());
  }

  /**
   * Adds an action that frees further memory before the output is freed. It may run more than once.
   */
  protected final void freeAtEnd(Runnable memory) {
    scratch = memory;
  }

  protected final BlockKey key() {
    return key;
  }

  /** The map output, owned by this writer. */
  protected final MapOutputWriter output() {
    return output;
  }

  /**
   * Whether an output must be published. No task reads empty blocks. But if outputs migrate, or are
   * adopted or copied, a published empty output avoids a second run of its map task.
   */
  protected static boolean mustPublish(boolean anyRecords) {
    SparkConf conf = SparkEnv.get().conf();
    return anyRecords
        || migratesShuffles(conf)
        || AdoptionSettings.ENABLED.get(conf)
        || SurviveSettings.isOn(conf);
  }

  private static boolean migratesShuffles(SparkConf conf) {
    return conf.getBoolean("spark.decommission.enabled", false)
        && conf.getBoolean("spark.storage.decommission.enabled", false)
        && conf.getBoolean("spark.storage.decommission.shuffleBlocks.enabled", true);
  }

  /** Bytes written to all partitions. */
  protected final long writtenBytes() {
    return Arrays.stream(partitionBytes()).sum();
  }

  /** The order-independent checksum of the records; 0 if Spark needs none. */
  protected long checksum() {
    return 0;
  }

  @Override
  public final Option<MapStatus> stop(boolean success) {
    if (stopped) {
      return Option.empty();
    }
    stopped = true;
    Option<MapStatus> status = success ? Option.apply(status()) : Option.empty();
    close();
    return status;
  }

  /** The location is this executor, also with an external shuffle service, which has no blocks. */
  private MapStatus status() {
    return MapStatuses.create(
        SparkEnv.get().blockManager().blockManagerId(), reportedBytes(), key.mapId(), checksum());
  }

  /** Frees the output unless it was published. */
  private void close() {
    try {
      scratch.run();
    } finally {
      output.close();
    }
  }

  @Override
  public final long[] getPartitionLengths() {
    return partitionBytes();
  }

  /** Sizes of the blocks that Spark is told; 0 exactly for empty blocks. */
  protected long[] reportedBytes() {
    return partitionBytes();
  }

  /** Bytes written to each partition; not 0 if it has rows. */
  protected long[] partitionBytes() {
    return output.partitionBytes();
  }
}
