package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.device.DeviceCatalog;
import io.weft.shuffle.device.DeviceOutputSource;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import scala.Tuple2;

/**
 * The map outputs of this executor, on the host and on its GPU, under the block ids of their
 * migration. The ids are of batches of all partitions, which Spark's own migration never uses.
 * Stateless.
 */
final class MigratedBlocks {
  private static final int HOST = Integer.MAX_VALUE;
  private static final int DEVICE = Integer.MAX_VALUE - 1;

  private MigratedBlocks() {}

  /** Whether the block of this id was on a GPU. */
  static boolean isOnDevice(ShuffleBlockBatchId block) {
    return block.endReduceId() == DEVICE;
  }

  /** Returns the keys of all map outputs of this executor. */
  static List<BlockKey> keys(ExecutorExchange exchange) {
    List<BlockKey> keys = new ArrayList<>(exchange.outputs());
    device().map(DeviceCatalog::keys).ifPresent(keys::addAll);
    return keys;
  }

  /** Whether this executor has an output. */
  static boolean holds(ExecutorExchange exchange, BlockKey key) {
    return exchange.holds(key) || isOnDevice(key);
  }

  /**
   * Prepares an output to be sent.
   *
   * @throws IOException if it was removed
   */
  static Tuple2<BlockId, ManagedBuffer> outgoing(ExecutorExchange exchange, BlockKey key)
      throws IOException {
    boolean onDevice = isOnDevice(key);
    BlockId id = new ShuffleBlockBatchId(key.shuffleId(), key.mapId(), 0, onDevice ? DEVICE : HOST);
    return new Tuple2<>(id, onDevice ? outgoing(key) : exchange.outgoing(key));
  }

  private static DeviceOutputSource outgoing(BlockKey key) throws IOException {
    return DeviceOutputSource.of(
        device().orElseThrow(() -> new IOException("the GPU of " + key + " was closed")), key);
  }

  private static boolean isOnDevice(BlockKey key) {
    return device().filter(blocks -> blocks.contains(key)).isPresent();
  }

  private static Optional<DeviceCatalog> device() {
    return ExecutorGpu.running().flatMap(ExecutorGpu::openExchange).map(DeviceExchange::catalog);
  }
}
