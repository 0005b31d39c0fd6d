package io.weft.spark.sql;

import io.weft.catalog.BlockKey;
import io.weft.deviceblocks.DeviceSlice;
import io.weft.deviceblocks.HostReadClient;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.transfer.BlockRequest;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a reduce task has to read, by where it lies: a map task writes to its executor's GPU where
 * it can use it, else to its host, so the executors are asked.
 *
 * @param onDevices map outputs that lie on GPUs, by executor
 * @param onHosts all others
 */
record DeviceBlocks(Map<String, List<BlockRequest>> onDevices, ShuffleBlocks onHosts) {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceBlocks.class);

  /** Asks every executor that has map outputs; one that does not answer has none on a GPU. */
  static DeviceBlocks of(ShuffleBlocks blocks, TaskContext context) {
    Map<String, List<BlockRequest>> byExecutor = new LinkedHashMap<>();
    for (BlockRequest request : blocks.requests()) {
      byExecutor.computeIfAbsent(request.executorId(), id -> new ArrayList<>()).add(request);
    }
    Map<String, List<BlockRequest>> onDevices = new LinkedHashMap<>();
    List<BlockRequest> onHosts = new ArrayList<>();
    byExecutor.forEach(
        (executor, requests) -> {
          Set<BlockKey> held = held(executor, requests, context);
          for (BlockRequest request : requests) {
            if (held.contains(request.key())) {
              onDevices.computeIfAbsent(executor, id -> new ArrayList<>()).add(request);
            } else {
              onHosts.add(request);
            }
          }
        });
    return new DeviceBlocks(onDevices, new ShuffleBlocks(onHosts, blocks.locations()));
  }

  private static Set<BlockKey> held(
      String executor, List<BlockRequest> requests, TaskContext context) {
    context.killTaskIfInterrupted();
    ExecutorGpu gpu = ExecutorGpu.current();
    List<BlockKey> keys = requests.stream().map(BlockRequest::key).toList();
    if (executor.equals(SparkEnv.get().executorId())) {
      Optional<DeviceExchange> own = gpu.openExchange();
      Set<BlockKey> held = new HashSet<>(keys);
      held.removeIf(key -> own.isEmpty() || !DeviceSlice.isHeld(own.get().catalog(), key));
      return held;
    }
    HostReadClient client = gpu.hostReads();
    try {
      return client.held(executor, keys);
    } catch (IOException e) {
      LOG.warn("What executor {} had on a GPU is gone: {}", executor, e.getMessage());
      return Set.of();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      context.killTaskIfInterrupted();
      throw new IllegalStateException("interrupted while asking executor " + executor, e);
    }
  }
}
