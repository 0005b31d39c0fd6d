package io.weft.spark.sql;

import io.weft.catalog.BlockKey;
import io.weft.deviceblocks.DeviceSlice;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.gpu.HeldOutputs;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.shuffle.Unchecked;
import io.weft.transfer.BlockFetchException;
import io.weft.transfer.BlockRequest;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;

/**
 * What a reduce task has to read, by where it lies: a map task writes to its executor's GPU where
 * it can use it, else to its host, so the executors are asked.
 *
 * @param onDevices map outputs that lie on GPUs, by executor
 * @param onHosts all others
 */
record DeviceBlocks(Map<String, List<BlockRequest>> onDevices, ShuffleBlocks onHosts) {
  /**
   * Asks executors that have map outputs. Throws Spark's fetch failure, unchecked, where one does
   * not answer: what it has on a GPU must not be taken for what is nowhere.
   */
  static DeviceBlocks of(ShuffleBlocks blocks, TaskContext context) {
    ExecutorGpu gpu = ExecutorGpu.current();
    return of(
        blocks,
        SparkEnv.get().executorId(),
        key -> gpu.openExchange().map(own -> DeviceSlice.isHeld(own.catalog(), key)).orElse(false),
        gpu.heldOutputs(),
        context::killTaskIfInterrupted);
  }

  /**
   * Asks executors that have map outputs.
   *
   * @param own this executor, which is not asked
   * @param held whether an output is on its GPU
   * @param wanted is asked while it waits, and throws when nobody wants the answer any more
   */
  static DeviceBlocks of(
      ShuffleBlocks blocks,
      String own,
      Predicate<BlockKey> held,
      HeldOutputs others,
      Runnable wanted) {
    Map<String, List<BlockKey>> asked = new LinkedHashMap<>();
    for (BlockRequest request : blocks.requests()) {
      if (!request.executorId().equals(own)) {
        asked.computeIfAbsent(request.executorId(), id -> new ArrayList<>()).add(request.key());
      }
    }
    Map<String, Set<BlockKey>> found = found(blocks, asked, others, wanted);
    Map<String, List<BlockRequest>> onDevices = new LinkedHashMap<>();
    List<BlockRequest> onHosts = new ArrayList<>();
    for (BlockRequest request : blocks.requests()) {
      String executor = request.executorId();
      boolean onDevice =
          executor.equals(own)
              ? held.test(request.key())
              : found.get(executor).contains(request.key());
      if (onDevice) {
        onDevices.computeIfAbsent(executor, id -> new ArrayList<>()).add(request);
      } else {
        onHosts.add(request);
      }
    }
    return new DeviceBlocks(onDevices, new ShuffleBlocks(onHosts, blocks.locations()));
  }

  private static Map<String, Set<BlockKey>> found(
      ShuffleBlocks blocks,
      Map<String, List<BlockKey>> asked,
      HeldOutputs others,
      Runnable wanted) {
    try {
      return others.find(asked, wanted);
    } catch (HeldOutputs.UnansweredException e) {
      wanted.run();
      BlockRequest first =
          blocks.requests().stream()
              .filter(request -> request.executorId().equals(e.executor()))
              .findFirst()
              .orElseThrow();
      throw Unchecked.<RuntimeException>raise(
          blocks.failure(
              new BlockFetchException(first, first.startPartition(), e.getMessage(), e)));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      wanted.run();
      throw new IllegalStateException("interrupted while asking executors " + asked.keySet(), e);
    }
  }
}
