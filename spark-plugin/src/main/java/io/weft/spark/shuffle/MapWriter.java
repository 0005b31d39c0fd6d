package io.weft.spark.shuffle;

import io.weft.catalog.BlockKey;
import io.weft.catalog.MapOutputWriter;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.compat.MapStatuses;
import io.weft.spark.config.Decommission;
import java.util.Arrays;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;

/**
 * How the writers of all routes end: whatever way the task does, what was not published is freed.
 * For one task thread.
 *
 * @param <K> of the records' keys
 * @param <V> of the records' values
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

  /** What is freed besides the output, before it; may be run more than once. */
  protected final void freeAtEnd(Runnable memory) {
    scratch = memory;
  }

  protected final BlockKey key() {
    return key;
  }

  /** Belongs to this. */
  protected final MapOutputWriter output() {
    return output;
  }

  /**
   * Whether an output has to be published. Nobody asks for empty blocks, but one that migrates
   * spares its map task a second run.
   */
  protected static boolean mustPublish(boolean anyRecords) {
    return anyRecords || Decommission.migratesShuffles(SparkEnv.get().conf());
  }

  /** Bytes of all partitions so far. */
  protected final long writtenBytes() {
    return Arrays.stream(partitionBytes()).sum();
  }

  /** Of the records, in no order; 0 where Spark wants none. */
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

  private MapStatus status() {
    return MapStatuses.create(
        SparkEnv.get().blockManager().shuffleServerId(), partitionBytes(), key.mapId(), checksum());
  }

  /** What was published stays. */
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

  /** Bytes of each partition so far; not 0 where it has rows. */
  protected long[] partitionBytes() {
    return output.partitionBytes();
  }
}
