package io.weft.spark.feed;

import io.weft.catalog.BlockKey;
import io.weft.exchange.ExecutorExchange;
import io.weft.spark.columns.ExactScatter;
import io.weft.spark.shuffle.MapWriter;
import java.io.IOException;
import java.util.function.IntUnaryOperator;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.CollectionAccumulator;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Deals the rows of one map task to the ranks, in chunks of exactly a batch's rows. Without keys it
 * deals whole chunks in turn, so there is only one remainder. For one task thread.
 *
 * @param <K> unused
 * @param <V> rows
 */
final class FeedWriter<K, V> extends MapWriter<K, V> {
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
        new BlockKey(dependency.shuffleId(), mapId), dependency.spec().ranks(), context, exchange);
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
  @SuppressWarnings("unchecked")
  public void write(Iterator<Product2<K, V>> records) throws IOException {
    long start = System.nanoTime();
    long count = writeRows((Iterator<InternalRow>) (Iterator<?>) records);
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

  private long writeRows(Iterator<InternalRow> rows) throws IOException {
    int rankOrdinal = spec.schema().size();
    return FeedRows.pass(
        rows,
        spec,
        context.partitionId(),
        row -> scatter.append(row, spec.byKey() ? row.getInt(rankOrdinal) : 0));
  }
}
