package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.device.DeviceOutputSink;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.IncomingOutput;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.OptionalLong;
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
final class MigrationStream implements StreamCallbackWithID {
  private static final Logger LOG = LoggerFactory.getLogger(MigrationStream.class);

  private final String id;
  private final BlockKey key;
  private final MigrationSink output;
  private Exception failure;

  MigrationStream(ExecutorExchange exchange, ShuffleBlockBatchId block) {
    this.id = block.name();
    this.key = new BlockKey(block.shuffleId(), block.mapId());
    this.output =
        MigratedBlocks.isOnDevice(block)
            ? MigrationSink.onDevice(exchange, key)
            : MigrationSink.onHost(exchange, key);
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

  /** Receives the bytes of a map output that migrates to this executor. Not thread-safe. */
  interface MigrationSink extends AutoCloseable {
    /** Consumes the next bytes completely. */
    void append(ByteBuffer bytes) throws IOException;

    /**
     * Publishes the output on this executor, after its last byte.
     *
     * @return number of bytes; empty if the output was dropped
     * @throws IOException if bytes are missing or damaged
     */
    OptionalLong finish() throws IOException;

    /** Frees an output that was not published. */
    @Override
    void close();

    /**
     * Creates a sink into this executor's arena. It drops outputs of a shuffle that was removed
     * here: an error would stop the migration of all other outputs.
     */
    static MigrationSink onHost(ExecutorExchange exchange, BlockKey key) {
      if (exchange.wasRemoved(key.shuffleId())) {
        return new Dropped(key, "its shuffle was removed here");
      }
      return new MigrationSink() {
        private final IncomingOutput output = exchange.incoming(key);

        @Override
        public void append(ByteBuffer bytes) throws IOException {
          output.append(bytes);
        }

        @Override
        public OptionalLong finish() throws IOException {
          return OptionalLong.of(output.finish());
        }

        @Override
        public void close() {
          output.close();
        }
      };
    }

    /**
     * Creates a sink into this executor's GPU, if the GPU is already in use for exchanges.
     * Otherwise, or if the shuffle was removed here, the sink drops the bytes: opening a GPU may
     * take long, and an error would stop the migration of all other outputs.
     */
    static MigrationSink onDevice(ExecutorExchange exchange, BlockKey key) {
      return ExecutorGpu.running()
          .flatMap(ExecutorGpu::openExchange)
          .map(device -> onDevice(exchange, device, key))
          .orElseGet(() -> new Dropped(key, "no GPU is in use here"));
    }

    private static MigrationSink onDevice(
        ExecutorExchange exchange, DeviceExchange device, BlockKey key) {
      if (device.catalog().wasRemoved(key.shuffleId())) {
        return new Dropped(key, "its shuffle was removed here");
      }
      return new MigrationSink() {
        private final DeviceOutputSink tables = device.incoming(key);

        @Override
        public void append(ByteBuffer bytes) throws IOException {
          tables.append(bytes);
        }

        @Override
        public OptionalLong finish() throws IOException {
          long bytes = tables.finish();
          exchange.countMigrated(bytes);
          return OptionalLong.of(bytes);
        }

        @Override
        public void close() {
          tables.close();
        }
      };
    }

    /**
     * A sink that drops the output. The driver is not notified, so Spark computes the output again
     * if a task needs it.
     *
     * @param reason for the log, as a clause
     */
    record Dropped(BlockKey key, String reason) implements MigrationSink {
      private static final Logger LOG = LoggerFactory.getLogger(MigrationSink.class);

      @Override
      public void append(ByteBuffer bytes) {
        bytes.position(bytes.limit());
      }

      @Override
      public OptionalLong finish() {
        LOG.info("{} of another executor was not taken over: {}", key, reason);
        return OptionalLong.empty();
      }

      @Override
      public void close() {
        // It owns nothing.
      }
    }
  }
}
