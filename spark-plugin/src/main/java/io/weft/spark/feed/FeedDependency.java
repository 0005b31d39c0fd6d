package io.weft.spark.feed;

import io.weft.exchange.ExecutorExchange;
import io.weft.spark.compat.PortableDependency;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.shuffle.ExchangeDependency;
import io.weft.spark.shuffle.ShuffleBlocks;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriteProcessor;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.util.CollectionAccumulator;
import scala.Product2;

/**
 * The shuffle of a feed: one partition per rank, in chunks of a batch's rows. Created on the
 * driver, immutable, and sent to every map and reduce task.
 */
final class FeedDependency extends PortableDependency<InternalRow> implements ExchangeDependency {
  private final FeedSpec spec;
  private final CollectionAccumulator<MapRows> written;

  /**
   * @param rows of the spec's schema; with keys, followed by the rank of each row
   * @param written collects the reports of the map tasks
   */
  FeedDependency(RDD<InternalRow> rows, FeedSpec spec, CollectionAccumulator<MapRows> written) {
    super(
        records(rows),
        spec.ranks(),
        spec.schema().size(),
        new ShuffleWriteProcessor(),
        InternalRow.class);
    this.spec = spec;
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

  FeedSpec spec() {
    return spec;
  }

  @Override
  public <K, V> ShuffleWriter<K, V> newWriter(
      long mapId,
      TaskContext context,
      ShuffleWriteMetricsReporter metrics,
      ExecutorExchange exchange) {
    String obstacle = spec.onGpus() == null ? "" : ExecutorGpu.current().exchangeObstacle();
    return spec.onGpus() == null || !obstacle.isEmpty()
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
}
