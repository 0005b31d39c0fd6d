package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockReaders.Copies;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.LateLookupException;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.runtime.WeftExecutor;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.spark.MapOutputTracker;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The blocks of a reduce task, and their locations as known to Spark.
 *
 * @param requests one for each map output with data in the task's partitions
 * @param locations Spark's address of every executor named in a request
 */
public record ShuffleBlocks(List<BlockRequest> requests, Map<String, BlockManagerId> locations) {
  public ShuffleBlocks {
    requests = List.copyOf(requests);
    locations = Map.copyOf(locations);
  }

  /**
   * Reads Spark's map output tracker. Blocks until the driver has sent the sizes.
   *
   * <p>Throws Spark's checked fetch failure, undeclared, if a map output is missing.
   */
  public static ShuffleBlocks of(ReadRange range) {
    Iterator<Tuple2<BlockManagerId, scala.collection.Seq<Tuple3<BlockId, Object, Object>>>>
        byExecutor =
            SparkEnv.get()
                .mapOutputTracker()
                .getMapSizesByExecutorId(
                    range.shuffleId(),
                    range.startMapIndex(),
                    range.endMapIndex(),
                    range.startPartition(),
                    range.endPartition());
    var executors = new ArrayList<>(CollectionConverters.asJava(byExecutor.toSeq()));
    range.shuffle(executors);
    List<BlockRequest> requests = new ArrayList<>();
    Map<String, BlockManagerId> locations = new HashMap<>();
    for (var executor : executors) {
      String source = source(executor._1());
      locations.put(source, executor._1());
      collect(source, executor._2(), range, requests);
    }
    return new ShuffleBlocks(requests, locations);
  }

  /** The version of Spark's map output tracker. Within one, an executor's look-ups are the same. */
  static long version() {
    MapOutputTracker tracker = SparkEnv.get().mapOutputTracker();
    synchronized (tracker.epochLock()) {
      return tracker.epoch();
    }
  }

  /** The executor's id, or the name of its copies. */
  private static String source(BlockManagerId place) {
    return isCopy(place)
        ? Copies.source(place.executorId(), place.topologyInfo().getOrElse(() -> ""))
        : place.executorId();
  }

  private static boolean isCopy(BlockManagerId place) {
    return place.executorId().equals(SurviveSettings.placeId());
  }

  /** Whether a request is for blocks in a copy, which has no executor. */
  public boolean isCopied(BlockRequest request) {
    return isCopy(locations.get(request.executorId()));
  }

  /** Adds one request for each map output of an executor. */
  private static void collect(
      String executorId,
      scala.collection.Seq<Tuple3<BlockId, Object, Object>> blocks,
      ReadRange range,
      List<BlockRequest> requests) {
    Map<Long, BlockRequest> byMap = new LinkedHashMap<>();
    for (Tuple3<BlockId, Object, Object> block : CollectionConverters.asJava(blocks)) {
      ShuffleBlockId id = (ShuffleBlockId) block._1();
      BlockRequest one =
          new BlockRequest(
              executorId,
              new BlockKey(id.shuffleId(), id.mapId()),
              (Integer) block._3(),
              range.startPartition(),
              range.endPartition(),
              (Long) block._2());
      byMap.merge(id.mapId(), one, ShuffleBlocks::together);
    }
    requests.addAll(byMap.values());
  }

  private static BlockRequest together(BlockRequest one, BlockRequest other) {
    return new BlockRequest(
        one.executorId(),
        one.key(),
        one.mapIndex(),
        one.startPartition(),
        one.endPartition(),
        one.expectedBytes() + other.expectedBytes());
  }

  /**
   * Looks up the executors of all blocks in one request, before the first call to one of them. If
   * that fails, the executors and their blocks may be good, so no fetch failure is reported.
   *
   * @throws LateLookupException if the driver does not answer in time
   */
  public void lookUpExecutors(TaskContext context) {
    ExecutorExchange exchange = WeftExecutor.exchange();
    Set<String> others = new HashSet<>(locations.keySet());
    others.remove(exchange.address().executorId());
    others.removeIf(source -> isCopy(locations.get(source)));
    try {
      exchange.calls().prepare(others);
    } catch (IOException e) {
      context.killTaskIfInterrupted();
      throw new LateLookupException(e);
    }
  }

  /**
   * Creates Spark's fetch failure for a block that cannot be read, so that Spark runs the map task
   * again. Creating the exception marks the running task as failed, so create it only to throw it.
   */
  public FetchFailedException failure(BlockFetchException cause) {
    BlockRequest request = cause.request();
    return failure(request, cause.partition(), cause.getMessage(), cause);
  }

  FetchFailedException failure(
      BlockRequest request, int partition, String message, Throwable cause) {
    return new FetchFailedException(
        locations.get(request.executorId()),
        request.key().shuffleId(),
        request.key().mapId(),
        request.mapIndex(),
        partition,
        message,
        cause);
  }

  /**
   * The part of a shuffle that a reduce task reads.
   *
   * @param shuffleId Spark's id of the shuffle
   * @param startMapIndex first map output
   * @param endMapIndex one past the last, or {@code Integer.MAX_VALUE} for all
   * @param startPartition first partition
   * @param endPartition one past the last
   */
  public record ReadRange(
      int shuffleId, int startMapIndex, int endMapIndex, int startPartition, int endPartition) {
    /** An odd number with well mixed bits, because Java's generator begins alike for like seeds. */
    private static final long MIX = 0x9E3779B97F4A7C15L;

    /**
     * Puts executors into this reader's order. Spark lists them in the same order for all readers.
     * Without this, all readers would send their first requests to the same executor.
     */
    void shuffle(List<?> executors) {
      long reader = 31 * (31L * shuffleId + startMapIndex) + startPartition;
      Collections.shuffle(executors, new Random(reader * MIX));
    }
  }

  /**
   * Reports a chunk reader's work to Spark's task metrics. Blocks of other executors on this host
   * count as local, because they are not sent over the network.
   *
   * <p>For one task thread.
   */
  public static final class FetchMetrics implements FetchListener {
    private static final long NANOS_PER_MILLI = 1_000_000;

    private final ShuffleReadMetricsReporter reporter;
    private final boolean inBatches;
    private long unreportedNanos;

    /**
     * Creates a listener for one task's metrics.
     *
     * @param inBatches whether the blocks of a map output count as one, as where Spark fetches
     *     adjacent blocks together
     */
    public FetchMetrics(ShuffleReadMetricsReporter reporter, boolean inBatches) {
      this.reporter = reporter;
      this.inBatches = inBatches;
    }

    @Override
    public void local(int blocks, long bytes) {
      reporter.incLocalBlocksFetched(inBatches ? Math.min(1, blocks) : blocks);
      reporter.incLocalBytesRead(bytes);
    }

    @Override
    public void sameHost(int blocks, long bytes) {
      local(blocks, bytes);
    }

    @Override
    public void remote(int outputs, int blocks, long bytes) {
      reporter.incRemoteBlocksFetched(inBatches ? outputs : blocks);
      reporter.incRemoteBytesRead(bytes);
    }

    /** Spark counts whole milliseconds, so the remainder is carried over to the next call. */
    @Override
    public void waited(long nanos) {
      unreportedNanos += nanos;
      long millis = unreportedNanos / NANOS_PER_MILLI;
      if (millis > 0) {
        reporter.incFetchWaitTime(millis);
        unreportedNanos -= millis * NANOS_PER_MILLI;
      }
    }
  }
}
