package io.weft.spark.feed;

import io.weft.deviceblocks.DeviceBlock;
import io.weft.deviceblocks.DeviceFetchException;
import io.weft.deviceblocks.DeviceRows;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.shuffle.Unchecked;
import io.weft.transfer.BlockFetchException;
import io.weft.transfer.BlockRequest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.util.TaskCompletionListener;

/**
 * Brings the rows of a rank to its device. Rows of this executor stay in place; rows of other
 * executors are fetched from their devices. For one task thread.
 */
final class DeviceShardLoader {
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
    for (Map.Entry<String, List<Wanted>> owner : byOwner(blocks).entrySet()) {
      fetch(device, shard, owner.getKey(), owner.getValue(), blocks);
    }
    shard.makeBatches(plan, rank);
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
      throw Unchecked.<RuntimeException>raise(
          blocks.failure(
              new BlockFetchException(
                  failed.request(), failed.block().partition(), e.getMessage(), e)));
    }
  }
}
