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
 * The blocks of a reduce task, by location. A map task writes to its executor's GPU if it can, else
 * to its host, so the reader asks the executors.
 *
 * @param onDevices map outputs on GPUs, by executor
 * @param onHosts all other map outputs
 */
record DeviceBlocks(Map<String, List<BlockRequest>> onDevices, ShuffleBlocks onHosts) {
  /**
   * Asks the executors that have map outputs. If one does not answer, it throws Spark's checked
   * fetch failure, undeclared. Otherwise outputs on that executor's GPU would be treated as
   * missing.
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
   * Asks the executors that have map outputs.
   *
   * @param own this executor, which is not asked
   * @param held tests whether an output is on this executor's GPU
   * @param killCheck called while it waits; throws if the task was killed
   */
  static DeviceBlocks of(
      ShuffleBlocks blocks,
      String own,
      Predicate<BlockKey> held,
      HeldOutputs others,
      Runnable killCheck) {
    Map<String, List<BlockKey>> asked = new LinkedHashMap<>();
    for (BlockRequest request : blocks.requests()) {
      if (!request.executorId().equals(own)) {
        asked.computeIfAbsent(request.executorId(), id -> new ArrayList<>()).add(request.key());
      }
    }
    Map<String, Set<BlockKey>> found = found(blocks, asked, others, killCheck);
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
      Runnable killCheck) {
    try {
      return others.find(asked, killCheck);
    } catch (HeldOutputs.UnansweredException e) {
      killCheck.run();
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
      killCheck.run();
      throw new IllegalStateException("interrupted while asking executors " + asked.keySet(), e);
    }
  }
}
