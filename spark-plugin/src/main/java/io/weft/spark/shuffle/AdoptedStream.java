package io.weft.spark.shuffle;

import io.weft.catalog.BlockKey;
import io.weft.exchange.ExecutorExchange;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.storage.BlockStatus;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.apache.spark.storage.ShuffleIndexBlockId;
import org.apache.spark.storage.StorageLevel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Receives a map output that a decommissioned executor sends to this one. When the output is
 * published here, the stream notifies the driver in the same way as Spark's resolver. The driver
 * then directs readers to this executor.
 *
 * <p>For one network thread. It keeps an error until the end of the stream, because an exception
 * before the end would close the whole connection.
 */
final class AdoptedStream implements StreamCallbackWithID {
  private static final Logger LOG = LoggerFactory.getLogger(AdoptedStream.class);

  private final String id;
  private final BlockKey key;
  private final Arrival output;
  private Exception failure;

  AdoptedStream(ExecutorExchange exchange, ShuffleBlockBatchId block) {
    this.id = block.name();
    this.key = new BlockKey(block.shuffleId(), block.mapId());
    this.output =
        MovedBlocks.isOnDevice(block)
            ? Arrival.onDevice(exchange, key)
            : Arrival.onHost(exchange, key);
  }

  @Override
  public String getID() {
    return id;
  }

  @Override
  public void onData(String stream, ByteBuffer bytes) {
    if (failure != null) {
      return;
    }
    try {
      output.append(bytes);
    } catch (IOException | RuntimeException e) {
      failure = e;
      output.close();
    }
  }

  @Override
  public void onComplete(String stream) throws IOException {
    if (failure != null) {
      throw new IOException(key + " was not taken over: " + failure.getMessage(), failure);
    }
    try (output) {
      output.finish().ifPresent(this::report);
    }
  }

  private void report(long bytes) {
    SparkEnv.get()
        .blockManager()
        .reportBlockStatus(
            new ShuffleIndexBlockId(key.shuffleId(), key.mapId(), 0),
            new BlockStatus(StorageLevel.DISK_ONLY(), 0, bytes),
            0);
    LOG.debug("{} of {} bytes was taken over", key, bytes);
  }

  @Override
  public void onFailure(String stream, Throwable cause) {
    LOG.info("{} was not taken over: {}", key, cause.toString());
    output.close();
  }
}
