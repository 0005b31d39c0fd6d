package io.weft.spark.shuffle;

import io.weft.shuffle.fetch.FetchListener;
import io.weft.spark.compat.RowSerializer;
import io.weft.spark.compat.RunningExchange;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkContext;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Metrics of an exchange in Spark's SQL tab, in addition to Spark's own. Tasks get copies with the
 * shuffle, and Spark collects them like other accumulators. A task's copy is for its thread.
 *
 * @param own bytes read in place from the reading executor's own arena
 * @param sameHost bytes read in place from other executors on the host
 * @param all the sum of both
 */
public record InPlaceMetrics(SQLMetric own, SQLMetric sameHost, SQLMetric all)
    implements Serializable {
  public static final String OWN_BYTES = "weftOwnBytesRead";
  public static final String SAME_HOST_BYTES = "weftSameHostBytesRead";
  public static final String IN_PLACE_BYTES = "weftInPlaceBytesRead";

  private static final Logger LOG = LoggerFactory.getLogger(InPlaceMetrics.class);
  private static final AtomicBoolean WARNED = new AtomicBoolean();

  /** Initial value, which Spark ignores in the minimum over tasks. */
  private static final long UNSET = -1;

  /** Creates these metrics by name. */
  public static Map<String, SQLMetric> create(SparkContext context) {
    Map<String, SQLMetric> created = new LinkedHashMap<>();
    created.put(OWN_BYTES, size(context, "bytes in place, own executor"));
    created.put(SAME_HOST_BYTES, size(context, "bytes in place, other executors of the host"));
    created.put(IN_PLACE_BYTES, size(context, "bytes read in place"));
    return created;
  }

  private static SQLMetric size(SparkContext context, String name) {
    return SQLMetrics.createSizeMetric(context, name, UNSET);
  }

  /** Returns these metrics from those of a node. */
  public static InPlaceMetrics of(Map<String, SQLMetric> metrics) {
    return new InPlaceMetrics(
        metrics.get(OWN_BYTES), metrics.get(SAME_HOST_BYTES), metrics.get(IN_PLACE_BYTES));
  }

  /**
   * Adds metrics to the exchange of a shuffle of packed rows that is being created. Empty if the
   * exchange is not found in a running query. A failure is logged and changes nothing else.
   */
  static Optional<InPlaceMetrics> ofRows(ShuffleDependency<?, ?, ?> dependency) {
    Serializer serializer = dependency.serializer();
    SQLMetric dataSize =
        RowSerializer.packsRows(serializer) ? RowSerializer.of(serializer).dataSize() : null;
    if (dataSize == null) {
      return Optional.empty();
    }
    SparkContext context = dependency.rdd().context();
    try {
      return RunningExchange.find(context, dataSize).map(exchange -> addTo(exchange, context));
    } catch (RuntimeException | LinkageError e) {
      // A LinkageError if this Spark's exchange has no such field.
      if (!WARNED.getAndSet(true)) {
        LOG.warn("Exchanges of rows show no metrics of Weft in Spark's SQL tab", e);
      }
      return Optional.empty();
    }
  }

  private static InPlaceMetrics addTo(RunningExchange exchange, SparkContext context) {
    Map<String, SQLMetric> created = create(context);
    exchange.add(created);
    return of(created);
  }

  /** Counts what a reader reads, and passes it on. */
  public FetchListener counting(FetchListener next) {
    return new FetchListener() {
      @Override
      public void local(int blocks, long bytes) {
        own.add(bytes);
        all.add(bytes);
        next.local(blocks, bytes);
      }

      @Override
      public void sameHost(int blocks, long bytes) {
        sameHost.add(bytes);
        all.add(bytes);
        next.sameHost(blocks, bytes);
      }

      @Override
      public void remote(int outputs, int blocks, long bytes) {
        next.remote(outputs, blocks, bytes);
      }

      @Override
      public void waited(long nanos) {
        next.waited(nanos);
      }
    };
  }
}
