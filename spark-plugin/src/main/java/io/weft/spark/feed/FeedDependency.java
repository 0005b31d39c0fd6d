package io.weft.spark.feed;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.columns.ExactScatter;
import io.weft.spark.compat.PortableDependency;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.shuffle.BlockSizes;
import io.weft.spark.shuffle.ExchangeDependency;
import io.weft.spark.shuffle.MapWriter;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import java.io.IOException;
import java.util.List;
import java.util.function.IntUnaryOperator;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriteProcessor;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.CollectionAccumulator;
import scala.Product2;
import scala.collection.Iterator;

/**
 * The shuffle of a feed: one partition per rank, in chunks of a batch's rows. Created on the
 * driver, immutable, and sent to every map and reduce task.
 */
final class FeedDependency extends PortableDependency<InternalRow> implements ExchangeDependency {
  private final FeedSpec spec;
  private final boolean batches;
  private final List<Integer> keys;
  private final CollectionAccumulator<MapRows> written;

  /**
   * @param rows the elements of the input, in their order
   * @param written collects the reports of the map tasks
   */
  FeedDependency(
      RDD<InternalRow> rows,
      FeedInput input,
      FeedSpec spec,
      CollectionAccumulator<MapRows> written) {
    super(
        records(rows),
        spec.ranks(),
        spec.schema().size(),
        new ShuffleWriteProcessor(),
        InternalRow.class,
        RowChecksumMode.NONE);
    this.spec = spec;
    this.batches = input.batches();
    this.keys = input.keys();
    this.written = written;
  }

  /**
   * Passes rows off as pairs, as the type demands. The writer is Weft's own, and Spark only
   * forwards the rows.
   */
  @SuppressWarnings({"unchecked", "rawtypes"})
  private static RDD<Product2<Object, InternalRow>> records(RDD<InternalRow> rows) {
    return (RDD) rows;
  }

  @Override
  public RouteTaken route() {
    return new RouteTaken(
        spec.onGpus() ? "feed on GPUs" : "feed",
        "its rows go to the ranks of a feed",
        spec.ranks());
  }

  FeedSpec spec() {
    return spec;
  }

  /** Whether the records of map tasks are batches. */
  boolean batches() {
    return batches;
  }

  /** Numbers of the key columns; see {@link FeedInput#keys}. */
  List<Integer> keys() {
    return keys;
  }

  /** Returns the rows of a map task's records, with their ranks if the feed has keys. */
  @SuppressWarnings("unchecked")
  Iterator<InternalRow> rows(Iterator<?> records) {
    return batches
        ? FeedRows.of((Iterator<ColumnarBatch>) records, spec, keys)
        : (Iterator<InternalRow>) records;
  }

  @Override
  public <K, V> ShuffleWriter<K, V> newWriter(
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange,
      BlockSizes sizes) {
    String obstacle = spec.onGpus() ? ExecutorGpu.current().exchangeObstacle() : "";
    return !spec.onGpus() || !obstacle.isEmpty()
        ? new FeedWriter<>(this, mapId, context, metrics, exchange, written, obstacle)
        : new GpuFeedWriter<>(this, mapId, context, metrics, exchange, written);
  }

  @Override
  public <K, C> ShuffleReader<K, C> newReader(
      ShuffleBlocks blocks,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange) {
    return new FeedReader<>(shuffleId(), spec, blocks, context, metrics, exchange);
  }

  /**
   * Deals the rows of one map task to the ranks, in chunks of exactly a batch's rows. Without keys
   * it deals whole chunks in turn, so there is only one remainder. For one task thread.
   *
   * @param <K> unused
   * @param <V> rows
   */
  static final class FeedWriter<K, V> extends MapWriter<K, V> {
    private final FeedDependency dependency;
    private final FeedSpec spec;
    private final TaskContext context;
    private final ShuffleWriteMetricsReporter metrics;
    private final CollectionAccumulator<MapRows> reports;
    private final ExactScatter scatter;
    private final String obstacle;
    private int turn;

    FeedWriter(
        FeedDependency dependency,
        long mapId,
        TaskContext context,
        ShuffleWriteMetricsReporter metrics,
        ExecutorExchange exchange,
        CollectionAccumulator<MapRows> reports,
        String obstacle) {
      super(
          new BlockKey(dependency.shuffleId(), mapId),
          dependency.spec().ranks(),
          context,
          exchange);
      this.dependency = dependency;
      this.spec = dependency.spec();
      this.context = context;
      this.metrics = metrics;
      this.reports = reports;
      this.obstacle = obstacle;
      this.turn = context.partitionId() % spec.ranks();
      int lanes = spec.byKey() ? spec.ranks() : 1;
      IntUnaryOperator rankOf = spec.byKey() ? lane -> lane : lane -> turn++ % spec.ranks();
      this.scatter =
          new ExactScatter(spec.schema(), lanes, spec.ranks(), rankOf, output(), spec.batchRows());
      freeAtEnd(scatter::close);
    }

    @Override
    public void write(Iterator<Product2<K, V>> records) throws IOException {
      long start = System.nanoTime();
      long count = pass(records);
      scatter.finish();
      if (mustPublish(count > 0)) {
        output().publish();
      }
      MapRows written = MapRows.of(context.partitionId(), key().mapId(), scatter.partitionRows());
      reports.add(obstacle.isEmpty() ? written : written.onHost(obstacle));
      metrics.incRecordsWritten(count);
      metrics.incBytesWritten(writtenBytes());
      metrics.incWriteTime(System.nanoTime() - start);
    }

    @SuppressWarnings("unchecked")
    private long pass(Object records) throws IOException {
      int partition = context.partitionId();
      if (dependency.batches() && spec.seed().isEmpty()) {
        Iterator<ColumnarBatch> batches = (Iterator<ColumnarBatch>) records;
        return FeedColumns.pass(batches, spec, dependency.keys(), partition, scatter);
      }
      int rankOrdinal = spec.schema().size();
      return FeedRows.pass(
          dependency.rows((Iterator<?>) records),
          spec,
          partition,
          row -> scatter.append(row, spec.byKey() ? row.getInt(rankOrdinal) : 0));
    }
  }
}
