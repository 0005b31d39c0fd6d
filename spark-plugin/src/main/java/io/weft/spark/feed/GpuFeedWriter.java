package io.weft.spark.feed;

import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceUploads;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.PendingPartitions;
import io.weft.shuffle.device.TableLayout;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.columns.ChunkBuilder;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.feed.FeedDependency.FeedWriter;
import io.weft.spark.feed.FeedRows.RankedBatches;
import io.weft.spark.feed.GpuTables.UnitGather;
import io.weft.spark.gpu.DeviceBatch;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.gpu.TablePacker;
import io.weft.spark.runtime.FeedCounters;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import io.weft.spark.shuffle.MapWriter;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.CollectionAccumulator;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
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
  /** Size of the chunks of rows that are uploaded and split at once. */
  private static final long UNIT_BYTES = 16L << 20;

  private static final long MAX_UNIT_ROWS = 1 << 22;

  private static final Logger LOG = LoggerFactory.getLogger(GpuFeedWriter.class);
  private static final AtomicBoolean LOGGED = new AtomicBoolean();

  private final FeedDependency dependency;
  private final FeedSpec spec;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final CollectionAccumulator<MapRows> reports;
  private final DeviceExchange device;
  private final GpuTables tables;
  private final GpuChunkSplitter units;
  private final ChunkBuilder builder;

  /** Whether batches of the input are dealt on the device. */
  private final boolean dealsBatches;

  /** Null if batches are not gathered before they are dealt. */
  private final UnitGather gather;

  /** The rank of each row that is being collected on the host. */
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
    this.dependency = dependency;
    this.spec = dependency.spec();
    this.context = context;
    this.metrics = metrics;
    this.reports = reports;
    this.turn = context.partitionId() % spec.ranks();
    this.device = ExecutorGpu.current().exchange();
    if (dependency.batches()) {
      device.admit(context);
    }
    long batchBytes = Math.max(1, GpuBatchLayout.of(spec).bytes());
    long unitBytes = dependency.batches() ? device.unitBytes() : UNIT_BYTES;
    long batches = Math.max(1, unitBytes / batchBytes);
    long unitBatches = Math.max(1, Math.min(batches, MAX_UNIT_ROWS / spec.batchRows()));
    this.places = new int[Math.toIntExact(unitBatches * spec.batchRows())];
    this.tables = GpuTables.of(spec);
    this.units =
        new GpuChunkSplitter(
            device,
            tables,
            dependency.keys(),
            spec.ranks(),
            "feed-%d-map-%d".formatted(dependency.shuffleId(), mapId),
            context::killTaskIfInterrupted);
    freeAtEnd(units::close); // It owns a lane, also if the rest of the constructor fails.
    this.builder = new ChunkBuilder(spec.schema(), exchange.arena(), this::upload);
    boolean keepsThem =
        dependency.batches() && GpuTables.inputObstacle(spec, dependency.keys()).isEmpty();
    boolean gathers = keepsThem && !(spec.byKey() && spec.seed().isEmpty());
    this.gather = gathers ? gather() : null;
    this.dealsBatches = keepsThem && (gather != null || !gathers);
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
          units.close(); // First, because its lane may still read the chunk.
          builder.close();
          if (gather != null) {
            gather.close();
          }
        });
  }

  /** Creates the gathering of batches; null if they have to be read as rows. */
  private UnitGather gather() {
    Runnable cancelCheck = context::killTaskIfInterrupted;
    UnitGather made =
        new UnitGather(device, spec, places.length, units.lane(), cancelCheck, this::deal);
    if (made.hasRoom()) {
      return made;
    }
    if (LOGGED.compareAndSet(false, true)) {
      LOG.info(
          "Map tasks of a feed copy batches on the GPU to the host first: {} is too small to"
              + " shuffle them there",
          WeftSettings.GPU_EXCHANGE_MEMORY);
    }
    return null;
  }

  private void upload(ChunkView chunk) {
    try (DeviceTable table = units.upload(chunk)) {
      if (gather == null) {
        units.add(table, places);
      } else {
        gather.add(table);
      }
      table.ready().awaitRecorded(device.deadline()); // The chunk's memory is used again.
    }
  }

  private void deal(DeviceTable table) {
    int[] ranks = new int[table.rows()];
    for (int row = 0; row < ranks.length && !spec.byKey(); row++) {
      ranks[row] = nextRank();
    }
    units.add(table, ranks);
  }

  @Override
  @SuppressWarnings("unchecked")
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    long start = System.nanoTime();
    long count =
        dealsBatches
            ? writeBatches((Iterator<ColumnarBatch>) (Iterator<?>) records)
            : FeedRows.pass(counted(records), spec, context.partitionId(), this::append);
    builder.flush();
    if (gather != null) {
      gather.finish();
    }
    DeviceOutput output = new DeviceOutput(key(), units.finish());
    device.catalog().publish(output);
    reports.add(MapRows.of(context.partitionId(), key().mapId(), units.rows()));
    metrics.incRecordsWritten(count);
    metrics.incBytesWritten(writtenBytes());
    metrics.incWriteTime(System.nanoTime() - start);
  }

  /** Returns the rows of the task's input. Counts the batches that are copied to the host. */
  private Iterator<InternalRow> counted(Iterator<?> records) {
    return dependency.rows(
        dependency.batches()
            ? records.map(
                batch -> {
                  if (DeviceBatch.of((ColumnarBatch) batch).isPresent()) {
                    FeedCounters.add(FeedCounter.GPU_INPUT_LEFT, 1);
                  }
                  return batch;
                })
            : records);
  }

  /** Batches that are not on the device, or have nulls, are checked and uploaded as rows. */
  private long writeBatches(Iterator<ColumnarBatch> batches) throws IOException {
    TensorCheck check = new TensorCheck(spec.schema(), context.partitionId());
    RankedBatches conversion = new RankedBatches(spec, dependency.keys());
    long count = 0;
    while (batches.hasNext()) {
      ColumnarBatch batch = batches.next();
      context.killTaskIfInterrupted();
      count += batch.numRows();
      Optional<DeviceBatch> there = DeviceBatch.of(batch, spec.schema());
      if (there.filter(tables::areIn).isPresent()) {
        builder.flush();
        addBatch(there.get().table());
        check.skip(batch.numRows());
        FeedCounters.add(FeedCounter.GPU_INPUT_KEPT, 1);
        continue;
      }
      there.ifPresent(left -> FeedCounters.add(FeedCounter.GPU_INPUT_LEFT, 1));
      Iterator<InternalRow> rows = conversion.rows(batch);
      while (rows.hasNext()) {
        InternalRow row = rows.next();
        check.next(row);
        // Gathered rows get their ranks later.
        append(row, gather == null ? row.getInt(spec.schema().size()) : 0);
      }
    }
    return count;
  }

  private void addBatch(DeviceTable table) {
    if (gather != null) {
      gather.add(table, tables.ordinals());
    } else if (table.rows() > 0) {
      units.add(table);
    }
  }

  private void append(InternalRow row) throws IOException {
    append(row, spec.byKey() ? row.getInt(spec.schema().size()) : nextRank());
  }

  private void append(InternalRow row, int place) throws IOException {
    places[builder.rows()] = place;
    builder.append(row);
    if (builder.rows() == places.length) {
      builder.flush();
    }
  }

  /** Without keys, deals whole batches in turn, so there is only one remainder. */
  private int nextRank() {
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

  /**
   * Uploads the chunks of a map task as tables and splits them by rank on the device, while the
   * next chunk is built on the host. For one task thread.
   */
  static final class GpuChunkSplitter implements AutoCloseable {
    /** Estimate of the memory that a row takes while it is split, beside its copy. */
    private static final long SCRATCH_BYTES = 24;

    private final DeviceExchange device;
    private final GpuTables tables;

    /** Numbers of the keys in a table of a query. */
    private final int[] queryKeys;

    /** Numbers of the keys in a uploaded or gathered table; none if the device cannot hash them. */
    private final int[] keys;

    private final int ranks;
    private final Runnable cancelCheck;
    private final DeviceUploads uploads;
    private final TablePacker units;

    /**
     * Starts without tables.
     *
     * @param keys numbers of the keys in the feed
     * @param name of the lane
     * @param cancelCheck is called during waits, and throws if the output is no longer needed
     */
    GpuChunkSplitter(
        DeviceExchange device,
        GpuTables tables,
        List<Integer> keys,
        int ranks,
        String name,
        Runnable cancelCheck) {
      this.device = device;
      this.tables = tables;
      this.queryKeys = keys.stream().mapToInt(Integer::intValue).toArray();
      this.keys = tables.keys(keys);
      this.ranks = ranks;
      this.cancelCheck = cancelCheck;
      this.uploads = device.gpu().uploads(name);
      this.units = new TablePacker(device, ranks, cancelCheck);
    }

    /** The lane of all work. */
    DeviceUploads lane() {
      return uploads;
    }

    /**
     * Starts to upload a chunk. Its memory can be reused when the table's event is recorded. The
     * caller closes the table.
     */
    DeviceTable upload(ChunkView chunk) {
      TableLayout layout = tables.layout(chunk.rows());
      CudaMemory memory = device.take(Math.max(TableLayout.ALIGNMENT, layout.bytes()), cancelCheck);
      try {
        Event uploaded =
            uploads.upload("the upload of " + layout, tables.runs(chunk, layout), memory);
        return DeviceTable.of(memory, layout, uploaded);
      } catch (RuntimeException e) {
        memory.close();
        throw e;
      }
    }

    /**
     * Starts to split a table. It can be closed when this returns.
     *
     * @param places the rank of each row, if the device does not hash them
     */
    void add(DeviceTable table, int[] places) {
      try (PendingPartitions pending = split(table, places)) {
        units.pack(pending, table.bytes());
      }
    }

    /**
     * Starts to split a table of a query, with all columns of the feed, by its keys. It can be
     * closed when this returns.
     */
    void add(DeviceTable table) {
      int[] kept = tables.ordinals();
      try (PendingPartitions pending =
          device.withRoom(
              SCRATCH_BYTES * table.rows(),
              cancelCheck,
              () -> device.partitioner().byHash(uploads.lane(), table, queryKeys, kept, ranks))) {
        units.pack(pending, table.layout().only(kept).bytes());
      }
    }

    private PendingPartitions split(DeviceTable table, int[] places) {
      long scratch = SCRATCH_BYTES * table.rows();
      if (keys.length > 0) {
        return device.withRoom(
            scratch,
            cancelCheck,
            () -> device.partitioner().byHash(uploads.lane(), table, keys, ranks));
      }
      long length = 4L * table.rows();
      try (CudaMemory ids = device.take(length, cancelCheck)) {
        Event uploaded =
            GpuTables.upload(uploads, "the upload of ranks", places, table.rows(), ids);
        return device.withRoom(
            scratch,
            cancelCheck,
            () -> device.partitioner().byIds(uploads.lane(), table, ids, ranks, uploaded));
      }
    }

    /** Returns all blocks; the caller owns them. */
    List<DeviceOutput.Unit> finish() {
      return units.finish();
    }

    /** Rows of each rank; valid after {@link #finish}. */
    int[] rows() {
      return Arrays.stream(units.rows()).mapToInt(Math::toIntExact).toArray();
    }

    /** Bytes of each rank. */
    long[] bytes() {
      return units.bytes();
    }

    /** Frees the blocks that were not finished. Idempotent. */
    @Override
    public void close() {
      uploads.close();
      units.close();
    }
  }
}
