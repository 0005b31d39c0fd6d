package io.weft.spark.feed;

import io.weft.catalog.BlockKey;
import io.weft.catalog.MapOutputWriter;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.columns.ExactScatter;
import io.weft.spark.config.Decommission;
import io.weft.spark.shuffle.MapStatuses;
import java.io.IOException;
import java.util.Arrays;
import java.util.function.IntUnaryOperator;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Deals the rows of one map task to the ranks, in chunks of exactly a batch's rows. Without keys
 * whole chunks are dealt in turn, so that there is one remainder only. For one task thread;
 * whatever way the task ends, what was not published is freed.
 *
 * @param <K> unused
 * @param <V> rows
 */
final class FeedWriter<K, V> extends ShuffleWriter<K, V> {
  private static final long NO_CHECKSUM = 0;

  /** Batches whose rows are mixed before they are dealt. */
  private static final int SHUFFLED_BATCHES = 16;

  private final FeedSpec spec;
  private final long mapId;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final CollectionAccumulator<MapRows> written;
  private final MapOutputWriter output;
  private final ExactScatter scatter;
  private int turn;
  private boolean stopped;

  FeedWriter(
      FeedDependency dependency,
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      CollectionAccumulator<MapRows> written) {
    this.spec = dependency.spec();
    this.mapId = mapId;
    this.context = context;
    this.metrics = metrics;
    this.written = written;
    this.turn = context.partitionId() % spec.ranks();
    this.output = exchange.newMapOutput(new BlockKey(dependency.shuffleId(), mapId), spec.ranks());
    int lanes = spec.byKey() ? spec.ranks() : 1;
    IntUnaryOperator rankOf = spec.byKey() ? lane -> lane : lane -> turn++ % spec.ranks();
    this.scatter =
        new ExactScatter(spec.schema(), lanes, spec.ranks(), rankOf, output, spec.batchRows());
    context.addTaskCompletionListener((TaskCompletionListener) ended -> close());
  }

  @Override
  @SuppressWarnings("unchecked")
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    long start = System.nanoTime();
    long count = writeRows((Iterator<InternalRow>) (Iterator<?>) records);
    scatter.finish();
    // Nobody asks for empty blocks, but one that migrates spares its map task a second run.
    if (count > 0 || Decommission.migratesShuffles(SparkEnv.get().conf())) {
      output.publish();
    }
    written.add(MapRows.of(context.partitionId(), scatter.partitionRows()));
    metrics.incRecordsWritten(count);
    metrics.incBytesWritten(Arrays.stream(output.partitionBytes()).sum());
    metrics.incWriteTime(System.nanoTime() - start);
  }

  private long writeRows(Iterator<InternalRow> rows) throws IOException {
    TensorCheck check = new TensorCheck(spec.schema(), context.partitionId());
    int rankOrdinal = spec.schema().size();
    ShuffleBuffer.RowTarget dealt =
        row -> scatter.append(row, spec.byKey() ? row.getInt(rankOrdinal) : 0);
    ShuffleBuffer buffer = spec.seed().map(seed -> buffer(seed, dealt)).orElse(null);
    ShuffleBuffer.RowTarget target = buffer == null ? dealt : buffer::add;
    long count = 0;
    while (rows.hasNext()) {
      InternalRow row = rows.next();
      check.next(row);
      target.add(row);
      count++;
    }
    if (buffer != null) {
      buffer.finish();
    }
    return count;
  }

  private ShuffleBuffer buffer(long seed, ShuffleBuffer.RowTarget target) {
    long rows = Math.min((long) SHUFFLED_BATCHES * spec.batchRows(), Integer.MAX_VALUE / 64);
    return new ShuffleBuffer((int) rows, Seeds.of(seed, context.partitionId()), target);
  }

  @Override
  public Option<MapStatus> stop(boolean success) {
    if (stopped) {
      return Option.empty();
    }
    stopped = true;
    Option<MapStatus> status = success ? Option.apply(mapStatus()) : Option.empty();
    close();
    return status;
  }

  /** What was published stays; the rest is freed. */
  private void close() {
    scatter.close();
    output.close();
  }

  private MapStatus mapStatus() {
    BlockManagerId location = SparkEnv.get().blockManager().shuffleServerId();
    return MapStatuses.create(location, output.partitionBytes(), mapId, NO_CHECKSUM);
  }

  @Override
  public long[] getPartitionLengths() {
    return output.partitionBytes();
  }
}
