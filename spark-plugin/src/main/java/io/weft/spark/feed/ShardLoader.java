package io.weft.spark.feed;

import io.weft.exchange.ExecutorExchange;
import io.weft.memory.ArenaFullException;
import io.weft.spark.columns.ChunkGather;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.shuffle.FetchMetrics;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.shuffle.Unchecked;
import io.weft.transfer.BlockFetchException;
import io.weft.transfer.BlockRequest;
import io.weft.transfer.ChunkReader;
import io.weft.transfer.FetchInterruptedException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Loads the batches of a rank, once for all epochs. Chunks of this host stay in place, those of
 * other hosts arrive in this executor's memory, and only remainders are copied together. For one
 * task thread.
 */
final class ShardLoader {
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
    ChunkReader reader = exchange.read(requests(blocks), new FetchMetrics(metrics));
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
      putTogether(shard);
      return shard;
    } catch (BlockFetchException e) {
      throw Unchecked.<RuntimeException>raise(blocks.failure(e));
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
      String name = "chunk %d of partition %d of %s".formatted(chunk, partition, reader.request());
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
                            map, partition, seen.getOrDefault(new ChunkId(map, partition, 0), 0))));
  }

  private void putTogether(FeedShard shard) throws ArenaFullException, InterruptedIOException {
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
