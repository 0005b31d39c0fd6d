package io.weft.spark.feed;

import io.weft.memory.ArenaFullException;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.device.DeviceBlock;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchInterruptedException;
import io.weft.spark.columns.ChunkGather;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.feed.FeedPlan.PlanCheck;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.shuffle.ShuffleBlocks.FetchMetrics;
import io.weft.spark.shuffle.ShuffleBlocks.ReadRange;
import io.weft.spark.shuffle.SneakyThrow;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.util.TaskCompletionListener;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Gives a rank its shard of the exchanged rows. For one task thread.
 *
 * @param <K> unused
 * @param <C> unused: a shard is no iterator of records
 */
final class FeedReader<K, C> implements ShuffleReader<K, C> {
  private final int shuffleId;
  private final FeedSpec spec;
  private final ShuffleBlocks blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ExecutorExchange exchange;

  FeedReader(
      int shuffleId,
      FeedSpec spec,
      ShuffleBlocks blocks,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange) {
    this.shuffleId = shuffleId;
    this.spec = spec;
    this.blocks = blocks;
    this.context = context;
    this.metrics = metrics;
    this.exchange = exchange;
  }

  /**
   * Reads a rank's chunks and waits for those that come over the network.
   *
   * @param rows by map task and partition, as written
   */
  FeedShard shard(int[][] rows, int rank) {
    FeedPlan plan = FeedPlan.of(spec, rows);
    if (spec.onGpus()) {
      return new DeviceShardLoader(shuffleId, spec, plan, rank, context, metrics)
          .load(blocks, writersTo(rank));
    }
    return new ShardLoader(shuffleId, spec, plan, rank, exchange, context, metrics)
        .load(blocks, writersTo(rank));
  }

  /** Map tasks whose output has data in a partition. */
  private Set<Integer> writersTo(int partition) {
    ReadRange range = new ReadRange(shuffleId, 0, Integer.MAX_VALUE, partition, partition + 1);
    return ShuffleBlocks.of(range).requests().stream()
        .map(BlockRequest::mapIndex)
        .collect(Collectors.toSet());
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    throw new UnsupportedOperationException("a feed is read by batches, not by records");
  }

  /**
   * Loads the batches of a rank, once for all epochs. Chunks of this host stay in place, those of
   * other hosts arrive in this executor's memory, and only remainders are copied together. For one
   * task thread.
   */
  static final class ShardLoader {
    private final int feed;
    private final FeedSpec spec;
    private final FeedPlan plan;
    private final int rank;
    private final ExecutorExchange exchange;
    private final TaskContext context;
    private final ShuffleReadMetricsReporter metrics;
    private final PlanCheck check;
    private final Map<ChunkId, ChunkView> chunks = new HashMap<>();

    /** Identifies a chunk of a partition of a map output by its index. */
    private record ChunkId(int map, int partition, int chunk) {
      static ChunkId of(FeedPlan.Piece piece) {
        return new ChunkId(piece.map(), piece.partition(), piece.chunk());
      }
    }

    ShardLoader(
        int feed,
        FeedSpec spec,
        FeedPlan plan,
        int rank,
        ExecutorExchange exchange,
        TaskContext context,
        ShuffleReadMetricsReporter metrics) {
      this.feed = feed;
      this.spec = spec;
      this.plan = plan;
      this.check = new PlanCheck(plan);
      this.rank = rank;
      this.exchange = exchange;
      this.context = context;
      this.metrics = metrics;
    }

    /**
     * Reads all blocks that the rank needs.
     *
     * <p>Throws Spark's fetch failure, unchecked, if a block cannot be fetched.
     *
     * @param blocks of all ranks
     * @param writers map tasks that wrote to this rank's own partition
     * @throws IllegalStateException if the blocks differ from the plan
     */
    FeedShard load(ShuffleBlocks blocks, Set<Integer> writers) {
      check.wroteTo(rank, writers);
      ChunkReader reader = exchange.read(requests(blocks), new FetchMetrics(metrics, false));
      FeedShard shard = new FeedShard(feed, spec, plan, rank, reader, exchange.arena());
      context.addTaskCompletionListener(
          (TaskCompletionListener)
              ended -> {
                shard.close();
                ended.taskMetrics().mergeShuffleReadMetrics();
              });
      try {
        reader.retainAll();
        readChunks(reader);
        combineRemainders(shard);
        return shard;
      } catch (BlockFetchException e) {
        throw SneakyThrow.<RuntimeException>raise(blocks.failure(e));
      } catch (FetchInterruptedException e) {
        context.killTaskIfInterrupted(); // Spark's own exception says why the task was killed.
        throw e;
      } catch (ArenaFullException | InterruptedIOException e) {
        throw new UncheckedIOException("no memory to combine the remainders of partitions", e);
      }
    }

    /** Partitions that the rank has batches of, in order, by map task. */
    private Map<Integer, Set<Integer>> needed() {
      Map<Integer, Set<Integer>> needed = new HashMap<>();
      for (FeedPlan.Batch batch : plan.rank(rank)) {
        for (FeedPlan.Piece piece : batch.pieces()) {
          needed.computeIfAbsent(piece.map(), map -> new TreeSet<>()).add(piece.partition());
        }
      }
      return needed;
    }

    /** Requests the needed blocks only, in the order of map tasks and partitions. */
    private List<BlockRequest> requests(ShuffleBlocks blocks) {
      Map<Integer, Set<Integer>> needed = needed();
      List<BlockRequest> requests = new ArrayList<>();
      for (BlockRequest all : blocks.requests()) {
        for (int partition : needed.getOrDefault(all.mapIndex(), Set.of())) {
          requests.add(
              new BlockRequest(
                  all.executorId(),
                  all.key(),
                  all.mapIndex(),
                  partition,
                  partition + 1,
                  all.expectedBytes() / spec.ranks()));
        }
      }
      return requests;
    }

    private void readChunks(ChunkReader reader) throws BlockFetchException {
      Map<ChunkId, Integer> seen = new HashMap<>();
      while (reader.next()) {
        int map = reader.request().mapIndex();
        int partition = reader.partition();
        int chunk = seen.merge(new ChunkId(map, partition, 0), 1, Integer::sum) - 1;
        String name =
            "chunk %d of partition %d of %s".formatted(chunk, partition, reader.request());
        ChunkView view = ChunkView.of(spec.schema(), reader.address(), reader.length(), name);
        check.chunk(map, partition, chunk, view.rows());
        chunks.put(new ChunkId(map, partition, chunk), view);
        metrics.incRecordsRead(view.rows());
      }
      needed()
          .forEach(
              (map, partitions) ->
                  partitions.forEach(
                      partition ->
                          check.end(
                              map,
                              partition,
                              seen.getOrDefault(new ChunkId(map, partition, 0), 0))));
    }

    private void combineRemainders(FeedShard shard)
        throws ArenaFullException, InterruptedIOException {
      try (ChunkGather gather = new ChunkGather(spec.schema())) {
        for (FeedPlan.Batch batch : plan.rank(rank)) {
          if (plan.isChunk(batch)) {
            shard.add(chunks.get(ChunkId.of(batch.pieces().get(0))));
          } else {
            for (FeedPlan.Piece piece : batch.pieces()) {
              gather.append(chunks.get(ChunkId.of(piece)), piece.start(), piece.rows());
            }
            shard.add(gather.write(exchange.arena()));
          }
        }
      }
    }
  }

  /**
   * Brings the rows of a rank to its device. Rows of this executor stay in place; rows of other
   * executors are fetched from their devices. For one task thread.
   */
  static final class DeviceShardLoader {
    /**
     * Limit of one request, by the sizes that map statuses estimate: it has to fit on both devices.
     */
    private static final long REQUEST_BYTES = 64L << 20;

    private final int feed;
    private final FeedSpec spec;
    private final FeedPlan plan;
    private final int rank;
    private final TaskContext context;
    private final ShuffleReadMetricsReporter metrics;
    private final PlanCheck check;

    /** A block, and the request that reports it to Spark. */
    private record Wanted(DeviceBlock block, BlockRequest request) {}

    DeviceShardLoader(
        int feed,
        FeedSpec spec,
        FeedPlan plan,
        int rank,
        TaskContext context,
        ShuffleReadMetricsReporter metrics) {
      this.feed = feed;
      this.spec = spec;
      this.plan = plan;
      this.rank = rank;
      this.context = context;
      this.metrics = metrics;
      this.check = new PlanCheck(plan);
    }

    /**
     * Reads all blocks that the rank needs.
     *
     * <p>Throws Spark's fetch failure, unchecked, if a block cannot be fetched.
     *
     * @param blocks of all ranks
     * @param writers map tasks that wrote to this rank's own partition
     * @throws IllegalStateException if the executor has no GPU, or the blocks differ from the plan
     */
    FeedShard load(ShuffleBlocks blocks, Set<Integer> writers) {
      check.wroteTo(rank, writers);
      DeviceExchange device = ExecutorGpu.current().exchange();
      DeviceShard shard =
          new DeviceShard(
              device,
              GpuBatchLayout.of(spec),
              "feed-%d-rank-%d".formatted(feed, rank),
              context::killTaskIfInterrupted);
      FeedShard loaded = FeedShard.onDevice(feed, spec, plan, rank, shard);
      context.addTaskCompletionListener(
          (TaskCompletionListener)
              ended -> {
                loaded.close();
                ended.taskMetrics().mergeShuffleReadMetrics();
              });
      blocks.lookUpExecutors(context);
      for (Map.Entry<String, List<Wanted>> owner : byOwner(blocks).entrySet()) {
        fetch(device, shard, owner.getKey(), owner.getValue(), blocks);
      }
      return loaded;
    }

    /** Groups the needed blocks by executor, in the order of map tasks and partitions. */
    private Map<String, List<Wanted>> byOwner(ShuffleBlocks blocks) {
      Map<Integer, Set<Integer>> needed = needed();
      Map<String, List<Wanted>> byOwner = new LinkedHashMap<>();
      for (BlockRequest request : blocks.requests()) {
        long expected = request.expectedBytes() / spec.ranks();
        for (int partition : needed.getOrDefault(request.mapIndex(), Set.of())) {
          byOwner
              .computeIfAbsent(request.executorId(), owner -> new ArrayList<>())
              .add(new Wanted(new DeviceBlock(request.key(), partition, expected), request));
        }
      }
      return byOwner;
    }

    private Map<Integer, Set<Integer>> needed() {
      Map<Integer, Set<Integer>> needed = new HashMap<>();
      for (FeedPlan.Batch batch : plan.rank(rank)) {
        for (FeedPlan.Piece piece : batch.pieces()) {
          needed.computeIfAbsent(piece.map(), map -> new TreeSet<>()).add(piece.partition());
        }
      }
      return needed;
    }

    private void fetch(
        DeviceExchange device,
        DeviceShard shard,
        String owner,
        List<Wanted> wanted,
        ShuffleBlocks blocks) {
      int from = 0;
      while (from < wanted.size()) {
        int to = from;
        long bytes = 0;
        while (to < wanted.size() && (to == from || bytes < REQUEST_BYTES)) {
          bytes += wanted.get(to++).block().expectedBytes();
        }
        fetchTogether(device, shard, owner, wanted.subList(from, to), blocks);
        from = to;
      }
    }

    private void fetchTogether(
        DeviceExchange device,
        DeviceShard shard,
        String owner,
        List<Wanted> wanted,
        ShuffleBlocks blocks) {
      List<DeviceBlock> asked = wanted.stream().map(Wanted::block).toList();
      try {
        List<List<DeviceRows>> tables =
            device.client().fetch(owner, asked, context::killTaskIfInterrupted);
        int[] rows = new int[wanted.size()];
        for (int i = 0; i < wanted.size(); i++) {
          int map = wanted.get(i).request().mapIndex();
          rows[i] = shard.add(map, asked.get(i).partition(), tables.get(i));
        }
        for (int i = 0; i < wanted.size(); i++) {
          check.partition(wanted.get(i).request().mapIndex(), asked.get(i).partition(), rows[i]);
          metrics.incRecordsRead(rows[i]);
        }
      } catch (DeviceFetchException e) {
        Wanted failed =
            wanted.stream()
                .filter(each -> each.block().equals(e.block()))
                .findFirst()
                .orElse(wanted.get(0));
        throw SneakyThrow.<RuntimeException>raise(
            blocks.failure(
                new BlockFetchException(
                    failed.request(), failed.block().partition(), e.getMessage(), e)));
      }
    }
  }
}
