package io.weft.spark.runtime;

import static io.weft.spark.runtime.WeftMetrics.Metric.Kind.COUNTER;
import static io.weft.spark.runtime.WeftMetrics.Metric.Kind.GAUGE;

import io.weft.collectives.Algorithm;
import io.weft.collectives.CollectiveMetrics.Line;
import io.weft.collectives.GpuBufferCounters;
import io.weft.collectives.symmetric.CollectiveMemoryCache.CacheStatistics;
import io.weft.shuffle.ExchangeStatistics;
import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.collectives.CollectiveStatistics;
import io.weft.spark.gpu.FetchCounters;
import io.weft.spark.gpu.FetchCounters.FetchCounter;
import io.weft.spark.runtime.FeedCounters.FeedCounter;
import io.weft.transfers.TransferCounter;
import io.weft.transfers.TransferStatistics;
import java.util.Arrays;
import java.util.List;
import java.util.function.ToLongFunction;
import java.util.stream.Stream;
import org.apache.commons.text.CaseUtils;

/** Every metric of an executor. */
public final class WeftMetrics {
  /** Bytes of removed shuffles that still have readers. */
  public static final Metric RETIRED_BYTES =
      gauge(
          "retiredBytes",
          "bytes of removed shuffles that still have readers",
          s -> s.exchange().retiredBytes());

  /** Bytes of shared memory in use. */
  public static final Metric MEMORY_USED =
      gauge(
          "memoryUsed",
          "bytes of shared memory in use",
          s -> s.exchange().arena().memory().usedBytes());

  /** Bytes of shared memory reserved. */
  public static final Metric MEMORY_RESERVED =
      gauge(
          "memoryReserved",
          "bytes of shared memory reserved: in use, or kept for reuse",
          s -> s.exchange().arena().memory().reservedBytes());

  /** Budget of shared memory. */
  public static final Metric MEMORY_BUDGET =
      gauge(
          "memoryBudget",
          "bytes of shared memory the executor may use",
          s -> s.exchange().memoryBudgetBytes());

  /** Bytes on disk in use. */
  public static final Metric DISK_USED =
      gauge(
          "diskUsed",
          "bytes of the local folders in use",
          s -> s.exchange().arena().disk().usedBytes());

  private static final Metric DISK_RESERVED =
      gauge(
          "diskReserved",
          "bytes of the local folders reserved",
          s -> s.exchange().arena().disk().reservedBytes());

  private static final Metric PEAK_USED =
      gauge(
          "peakUsed",
          "peak of the bytes in use, disk included",
          s -> s.exchange().arena().peakUsedBytes());

  private static final Metric MEMORY_FRESH =
      new Metric(
          "memoryFresh",
          COUNTER,
          "bytes of shared memory touched for the first time",
          s -> s.exchange().arena().memory().freshBytes());

  private static final Metric PRIVATE_RESERVED =
      gauge(
          "privateReserved",
          "bytes of private memory reserved, with encrypted disks",
          s -> s.exchange().arena().privateMemory().reservedBytes());

  private static final Metric OPEN_READERS =
      gauge("openReaders", "open readers of running tasks", s -> s.exchange().openReaders());

  private static final Metric RECEIVING_BYTES =
      gauge(
          "receivingBytes",
          "bytes that readers have requested over the network and not yet used",
          s -> s.exchange().receivingBytes());

  private static final Metric OPEN_STREAMS =
      gauge("openStreams", "answers to peers in flight", s -> s.exchange().openStreams());

  private static final Metric SERVED_BYTES =
      gauge("servedBytes", "bytes of answers to peers in flight", s -> s.exchange().servedBytes());

  private static final Metric MAPPED_PEER_SEGMENTS =
      gauge(
          "mappedPeerSegments",
          "mapped segments of other executors on this host",
          s -> s.exchange().mappedPeerSegments());

  private static final List<Metric> ALL =
      Stream.of(
              Stream.of(
                  MEMORY_USED,
                  MEMORY_RESERVED,
                  MEMORY_BUDGET,
                  MEMORY_FRESH,
                  DISK_USED,
                  DISK_RESERVED,
                  PRIVATE_RESERVED,
                  PEAK_USED,
                  RETIRED_BYTES,
                  OPEN_READERS,
                  RECEIVING_BYTES,
                  OPEN_STREAMS,
                  SERVED_BYTES,
                  MAPPED_PEER_SEGMENTS),
              Arrays.stream(ExchangeCounter.values()).map(WeftMetrics::of),
              collectives(),
              symmetricMemory(),
              gpuBuffers(),
              Arrays.stream(Algorithm.values())
                  .filter(WeftMetrics::isCarriedOut)
                  .flatMap(WeftMetrics::of),
              Arrays.stream(TransferCounter.values()).map(WeftMetrics::of),
              transfers(),
              Arrays.stream(FetchCounter.values()).map(WeftMetrics::of),
              Arrays.stream(FeedCounter.values()).map(WeftMetrics::of))
          .flatMap(metrics -> metrics)
          .toList();

  private WeftMetrics() {}

  /** The reference is for tests, and failures have their own metric. */
  private static boolean isCarriedOut(Algorithm algorithm) {
    return algorithm != Algorithm.REFERENCE && algorithm != Algorithm.UNFINISHED;
  }

  /** All metrics, in the order of the documentation. */
  public static List<Metric> all() {
    return ALL;
  }

  /** The metric's name of a counter of the exchange. */
  public static String name(ExchangeCounter counter) {
    return CaseUtils.toCamelCase(counter.name(), false, '_');
  }

  private static Metric gauge(String name, String doc, ToLongFunction<ExecutorStatistics> source) {
    return new Metric(name, GAUGE, doc, source);
  }

  private static Stream<Metric> collectives() {
    return Stream.of(
        gauge(
            "communicatorsOpen",
            "communicators of running barrier tasks",
            s -> s.collectives().open()),
        new Metric(
            "communicatorsOpened",
            COUNTER,
            "communicators created for them",
            s -> s.collectives().opened()),
        counter("collectiveCalls", "completed collectives and messages", Line::calls),
        counter("collectiveFailures", "failed collectives and messages", Line::failures),
        counter("collectiveBytes", "bytes of these, counted as in nccl-tests", Line::bytes),
        counter("collectiveNanos", "nanoseconds of these", Line::nanos),
        counter(
            "collectiveWaitNanos",
            "nanoseconds that these waited for other ranks",
            Line::waitNanos));
  }

  private static Stream<Metric> symmetricMemory() {
    return Stream.of(
        memoryCounter(
            "symmetricHits",
            "symmetric buffers in memory of an earlier barrier stage",
            CacheStatistics::hits),
        memoryCounter(
            "symmetricMisses", "symmetric buffers in fresh memory", CacheStatistics::misses),
        memoryCounter(
            "symmetricMismatches",
            "cached symmetric segments freed after another rank freed its part",
            CacheStatistics::mismatches),
        memoryCounter(
            "symmetricFresh",
            "bytes of symmetric memory touched for the first time",
            CacheStatistics::freshBytes),
        gauge(
            "symmetricUsed",
            "bytes of symmetric memory of running barrier tasks",
            s -> s.collectives().memory().usedBytes()),
        gauge(
            "symmetricIdle",
            "bytes of symmetric memory kept for later barrier stages",
            s -> s.collectives().memory().idleBytes()));
  }

  private static Stream<Metric> gpuBuffers() {
    return Stream.of(
        gpuCounter(
            "gpuBufferWindows",
            "segments of GPU memory registered with NCCL by barrier tasks",
            GpuBufferCounters::windows),
        gpuCounter(
            "gpuBufferFresh",
            "bytes of GPU memory allocated for buffers of barrier tasks",
            GpuBufferCounters::freshBytes),
        gpuCounter(
            "gpuBufferReused",
            "bytes of GPU memory from earlier barrier stages",
            GpuBufferCounters::reusedBytes),
        gauge(
            "gpuBufferUsed",
            "bytes of GPU memory in segments of running barrier tasks, or kept after a failure",
            s -> s.collectives().gpu().usedBytes()),
        gauge(
            "gpuBufferIdle",
            "bytes of GPU memory kept for later barrier stages",
            s -> s.collectives().gpu().idleBytes()));
  }

  private static Metric gpuCounter(
      String name, String doc, ToLongFunction<GpuBufferCounters> figure) {
    return new Metric(name, COUNTER, doc, s -> figure.applyAsLong(s.collectives().gpu()));
  }

  private static Metric memoryCounter(
      String name, String doc, ToLongFunction<CacheStatistics> figure) {
    return new Metric(name, COUNTER, doc, s -> figure.applyAsLong(s.collectives().memory()));
  }

  private static Metric counter(String name, String doc, ToLongFunction<Line> figure) {
    return new Metric(name, COUNTER, doc, s -> s.collectives().sum(figure));
  }

  private static Stream<Metric> of(Algorithm algorithm) {
    String end = CaseUtils.toCamelCase(algorithm.name(), true, '_');
    return Stream.of(
        counter(
            "collectiveCalls" + end,
            "operations by the algorithm " + algorithm,
            algorithm,
            Line::calls),
        counter(
            "collectiveBytes" + end,
            "bytes of operations by the algorithm " + algorithm,
            algorithm,
            Line::bytes),
        counter(
            "collectiveNanos" + end,
            "nanoseconds of operations by the algorithm " + algorithm,
            algorithm,
            Line::nanos));
  }

  private static Metric counter(
      String name, String doc, Algorithm algorithm, ToLongFunction<Line> figure) {
    return new Metric(name, COUNTER, doc, s -> s.collectives().sum(algorithm, figure));
  }

  /** The metric's name of a counter of transfers. */
  public static String name(TransferCounter counter) {
    return CaseUtils.toCamelCase("TRANSFER_" + counter.name(), false, '_');
  }

  private static Metric of(TransferCounter counter) {
    return new Metric(
        name(counter), COUNTER, counter.description(), s -> s.transfers().get(counter));
  }

  /** The metric's name of a counter of feeds. */
  public static String name(FeedCounter counter) {
    return CaseUtils.toCamelCase("FEED_" + counter.name(), false, '_');
  }

  private static Metric of(FeedCounter counter) {
    return new Metric(
        name(counter), COUNTER, counter.description(), s -> FeedCounters.get(counter));
  }

  private static Metric of(FetchCounter counter) {
    return new Metric(
        CaseUtils.toCamelCase("GPU_FETCH_" + counter.name(), false, '_'),
        COUNTER,
        counter.description(),
        s -> FetchCounters.get(counter));
  }

  private static Stream<Metric> transfers() {
    return Stream.of(
        new Metric(
            "transferCommunicatorsCreated",
            COUNTER,
            "communicators created for cliques of transfers",
            s -> s.transfers().cliques().created()),
        new Metric(
            "transferCommunicatorsEvicted",
            COUNTER,
            "clique communicators closed, broken or idle",
            s -> s.transfers().cliques().closed()),
        new Metric(
            "transferCommunicatorsAborted",
            COUNTER,
            "clique communicators aborted after the loss of an executor",
            s -> s.transfers().cliques().aborted()),
        gauge(
            "transferCommunicatorsOpen",
            "open communicators of cliques",
            s -> s.transfers().cliques().open()),
        new Metric(
            "transferBuffersAllocated",
            COUNTER,
            "receive buffers allocated",
            s -> s.transfers().buffers().allocated()),
        new Metric(
            "transferBuffersReused",
            COUNTER,
            "receive buffers reused",
            s -> s.transfers().buffers().reused()),
        new Metric(
            "transferBuffersFresh",
            COUNTER,
            "bytes of GPU memory allocated for receive buffers",
            s -> s.transfers().buffers().freshBytes()),
        gauge("transferBuffersOut", "receive buffers in use", s -> s.transfers().buffers().out()),
        gauge(
            "transferBuffersIdle",
            "bytes of idle receive buffers, kept for reuse",
            s -> s.transfers().buffers().idleBytes()));
  }

  private static Metric of(ExchangeCounter counter) {
    return new Metric(
        name(counter),
        COUNTER,
        counter.description(),
        statistics -> statistics.exchange().get(counter));
  }

  /**
   * All statistics of an executor at one time. Immutable.
   *
   * @param exchange statistics of blocks
   * @param collectives statistics of barrier tasks
   * @param transfers statistics of transfers with other executors
   */
  public record ExecutorStatistics(
      ExchangeStatistics exchange,
      CollectiveStatistics collectives,
      TransferStatistics transfers) {}

  /**
   * A metric of an executor.
   *
   * @param name name in the metric registry
   * @param kind counter or gauge
   * @param doc the meaning, in one line
   * @param source reads the value
   */
  public record Metric(
      String name, Kind kind, String doc, ToLongFunction<ExecutorStatistics> source) {
    /** Whether a metric only grows. */
    public enum Kind {
      /** Grows from the executor's start. */
      COUNTER,
      /** Rises and falls. */
      GAUGE
    }

    /** Reads the value. */
    public long read(ExecutorStatistics statistics) {
      return source.applyAsLong(statistics);
    }
  }
}
