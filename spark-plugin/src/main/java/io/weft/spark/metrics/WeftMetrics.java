package io.weft.spark.metrics;

import static io.weft.spark.metrics.Metric.Kind.COUNTER;
import static io.weft.spark.metrics.Metric.Kind.GAUGE;

import io.weft.exchange.ExchangeStatistics;
import io.weft.metrics.ExchangeCounter;
import java.util.Arrays;
import java.util.List;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;
import org.apache.commons.text.CaseUtils;

/** Every metric of an executor. */
public final class WeftMetrics {
  /** Bytes that wait for readers before they can be freed. */
  public static final Metric RETIRED_BYTES =
      gauge(
          "retiredBytes",
          "bytes of removed shuffles that wait for their last reader",
          ExchangeStatistics::retiredBytes);

  /** Bytes of shared memory in use. */
  public static final Metric MEMORY_USED =
      gauge("memoryUsed", "bytes of shared memory in use", s -> s.arena().memory().usedBytes());

  /** Bytes of shared memory reserved. */
  public static final Metric MEMORY_RESERVED =
      gauge(
          "memoryReserved",
          "bytes of shared memory reserved: used now, or kept for what comes next",
          s -> s.arena().memory().reservedBytes());

  /** Budget of shared memory. */
  public static final Metric MEMORY_BUDGET =
      gauge(
          "memoryBudget",
          "bytes of shared memory the executor may use",
          ExchangeStatistics::memoryBudgetBytes);

  /** Bytes on disk in use. */
  public static final Metric DISK_USED =
      gauge(
          "diskUsed",
          "bytes of the local folders in use, for what did not fit into shared memory",
          s -> s.arena().disk().usedBytes());

  private static final Metric DISK_RESERVED =
      gauge(
          "diskReserved",
          "bytes of the local folders reserved",
          s -> s.arena().disk().reservedBytes());

  private static final Metric PEAK_USED =
      gauge(
          "peakUsed",
          "most bytes ever in use at once, on disk too",
          s -> s.arena().peakUsedBytes());

  private static final Metric MEMORY_FRESH =
      new Metric(
          "memoryFresh",
          COUNTER,
          "bytes of shared memory touched for the first time; stands still while memory is reused",
          s -> s.arena().memory().freshBytes());

  private static final Metric OPEN_READERS =
      gauge("openReaders", "readers of running tasks", ExchangeStatistics::openReaders);

  private static final Metric OPEN_STREAMS =
      gauge("openStreams", "answers to peers that are being sent", ExchangeStatistics::openStreams);

  private static final Metric MAPPED_PEER_SEGMENTS =
      gauge(
          "mappedPeerSegments",
          "segments of other executors on this host that are mapped",
          ExchangeStatistics::mappedPeerSegments);

  private static final List<Metric> ALL =
      Stream.concat(
              Stream.of(
                  MEMORY_USED,
                  MEMORY_RESERVED,
                  MEMORY_BUDGET,
                  MEMORY_FRESH,
                  DISK_USED,
                  DISK_RESERVED,
                  PEAK_USED,
                  RETIRED_BYTES,
                  OPEN_READERS,
                  OPEN_STREAMS,
                  MAPPED_PEER_SEGMENTS),
              Arrays.stream(ExchangeCounter.values()).map(WeftMetrics::of))
          .toList();

  private WeftMetrics() {}

  /** All metrics, in the order of the documentation. */
  public static List<Metric> all() {
    return ALL;
  }

  /** The name under which a counter of the exchange is found. */
  public static String name(ExchangeCounter counter) {
    return CaseUtils.toCamelCase(counter.name(), false, '_');
  }

  private static Metric gauge(String name, String doc, ToLongFunction<ExchangeStatistics> source) {
    return new Metric(name, GAUGE, doc, source);
  }

  private static Metric of(ExchangeCounter counter) {
    return new Metric(
        name(counter), COUNTER, counter.description(), statistics -> statistics.get(counter));
  }
}
