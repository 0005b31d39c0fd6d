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
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Deals the rows of one map task to the ranks, in chunks of exactly a batch's rows. Without keys
 * whole chunks are dealt in turn, so that there is one remainder only. For one task thread.
 *
 * @param <K> unused
 * @param <V> rows
 */
final class FeedWriter<K, V> extends MapWriter<K, V> {
  /** Batches whose rows are mixed before they are dealt. */
  private static final int SHUFFLED_BATCHES = 16;

  private final FeedSpec spec;
  private final TaskContext context;
  private final ShuffleWriteMetricsReporter metrics;
  private final CollectionAccumulator<MapRows> reports;
  private final ExactScatter scatter;
  private int turn;
  private UnsafeProjection projection;

  FeedWriter(
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
    reports.add(MapRows.of(context.partitionId(), key().mapId(), scatter.partitionRows()));
    metrics.incRecordsWritten(count);
    metrics.incBytesWritten(writtenBytes());
    metrics.incWriteTime(System.nanoTime() - start);
  }

  private long writeRows(Iterator<InternalRow> rows) throws IOException {
    TensorCheck check = new TensorCheck(spec.schema(), context.partitionId());
    int rankOrdinal = spec.schema().size();
    ShuffleBuffer.RowTarget dealt =
        row -> scatter.append(row, spec.byKey() ? row.getInt(rankOrdinal) : 0);
    ShuffleBuffer buffer = spec.seed().map(seed -> buffer(seed, dealt)).orElse(null);
    ShuffleBuffer.RowTarget target = buffer == null ? dealt : row -> buffer.add(unsafe(row));
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

  /** Rows of most plans are, and know how large they are. */
  private UnsafeRow unsafe(InternalRow row) {
    if (row instanceof UnsafeRow already) {
      return already;
    }
    if (projection == null) {
      StructType schema = spec.schema();
      projection =
          UnsafeProjection.create(
              spec.byKey()
                  ? schema.add(FeedRequirements.RANK_COLUMN, DataTypes.IntegerType)
                  : schema);
    }
    return projection.apply(row);
  }

  private ShuffleBuffer buffer(long seed, ShuffleBuffer.RowTarget target) {
    long rows = Math.min((long) SHUFFLED_BATCHES * spec.batchRows(), Integer.MAX_VALUE / 64);
    return new ShuffleBuffer(
        (int) rows, ShuffleBuffer.MOST_BYTES, Seeds.of(seed, context.partitionId()), target);
  }
}
