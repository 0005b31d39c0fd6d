package io.weft.spark.feed;

import io.weft.catalog.BlockKey;
import io.weft.deviceblocks.DeviceOutput;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.columns.ChunkBuilder;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.shuffle.MapWriter;
import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskCompletionListener;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Deals the rows of one map task to the ranks on the GPU, and keeps them there. The result is the
 * same as that of {@link FeedWriter}, row for row. For one task thread.
 *
 * @param <K> unused
 * @param <V> rows
 */
final class GpuFeedWriter<K, V> extends MapWriter<K, V> {
  /** Size of the chunks that are uploaded and split at once. */
  private static final long UNIT_BYTES = 16L << 20;

  private static final long MOST_UNIT_ROWS = 1 << 22;

  private final FeedSpec spec;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final CollectionAccumulator<MapRows> reports;
  private final DeviceExchange device;
  private final GpuUnits units;
  private final ChunkBuilder builder;

  /** The rank of each row that is being collected. */
  private final int[] places;

  private int turn;
  private int inBatch;
  private int rank;

  GpuFeedWriter(
      FeedDependency dependency,
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      CollectionAccumulator<MapRows> reports) {
    super(
        new BlockKey(dependency.shuffleId(), mapId), dependency.spec().ranks(), context, exchange);
    this.spec = dependency.spec();
    this.context = context;
    this.metrics = metrics;
    this.reports = reports;
    this.turn = context.partitionId() % spec.ranks();
    this.device = ExecutorGpu.current().exchange();
    long batchBytes = Math.max(1, GpuBatchLayout.of(spec).bytes());
    long batches = Math.max(1, UNIT_BYTES / batchBytes);
    long unitBatches = Math.max(1, Math.min(batches, MOST_UNIT_ROWS / spec.batchRows()));
    this.places = new int[Math.toIntExact(unitBatches * spec.batchRows())];
    this.units =
        new GpuUnits(
            device,
            GpuTables.of(spec),
            spec.ranks(),
            "feed-%d-map-%d".formatted(dependency.shuffleId(), mapId),
            context::killTaskIfInterrupted);
    this.builder = new ChunkBuilder(spec.schema(), exchange.arena(), this::upload);
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            ended -> {
              // An attempt that fails after all must not publish its output.
              if (ended.isFailed() || ended.isInterrupted()) {
                device.catalog().remove(key());
              }
            });
    freeAtEnd(
        () -> {
          builder.close();
          units.close();
        });
  }

  private void upload(ChunkView chunk) {
    units.add(chunk, places);
  }

  @Override
  @SuppressWarnings("unchecked")
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    long start = System.nanoTime();
    Iterator<InternalRow> rows = (Iterator<InternalRow>) (Iterator<?>) records;
    long count = FeedRows.pass(rows, spec, context.partitionId(), this::append);
    builder.flush();
    DeviceOutput output = new DeviceOutput(key(), units.finish());
    device.catalog().publish(output);
    reports.add(MapRows.of(context.partitionId(), key().mapId(), units.rows()));
    metrics.incRecordsWritten(count);
    metrics.incBytesWritten(writtenBytes());
    metrics.incWriteTime(System.nanoTime() - start);
  }

  private void append(InternalRow row) throws IOException {
    places[builder.rows()] = rankOf(row);
    builder.append(row);
    if (builder.rows() == places.length) {
      builder.flush();
    }
  }

  /** Without keys, deals whole batches in turn, so there is only one remainder. */
  private int rankOf(InternalRow row) {
    if (spec.byKey()) {
      return row.getInt(spec.schema().size());
    }
    if (inBatch == 0) {
      rank = turn++ % spec.ranks();
    }
    inBatch = (inBatch + 1) % spec.batchRows();
    return rank;
  }

  @Override
  protected long[] partitionBytes() {
    return units.bytes();
  }
}
