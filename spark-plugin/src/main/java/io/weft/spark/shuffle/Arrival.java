package io.weft.spark.shuffle;

import io.weft.catalog.BlockKey;
import io.weft.deviceblocks.IncomingTables;
import io.weft.exchange.ExecutorExchange;
import io.weft.migration.IncomingOutput;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.OptionalLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Receives the bytes of a map output that migrates to this executor. Not thread-safe. */
interface Arrival extends AutoCloseable {
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

  /** Creates a sink into this executor's arena. */
  static Arrival onHost(ExecutorExchange exchange, BlockKey key) {
    return new Arrival() {
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
   * Creates a sink into this executor's GPU, if the GPU is already in use for exchanges. Otherwise
   * the sink drops the bytes: opening a GPU may take long, and an error would stop the migration of
   * all other outputs.
   */
  static Arrival onDevice(ExecutorExchange exchange, BlockKey key) {
    return ExecutorGpu.running()
        .flatMap(ExecutorGpu::openExchange)
        .map(device -> onDevice(exchange, device, key))
        .orElseGet(() -> new Dropped(key));
  }

  private static Arrival onDevice(ExecutorExchange exchange, DeviceExchange device, BlockKey key) {
    return new Arrival() {
      private final IncomingTables tables = device.incoming(key);

      @Override
      public void append(ByteBuffer bytes) throws IOException {
        tables.append(bytes);
      }

      @Override
      public OptionalLong finish() throws IOException {
        long bytes = tables.finish();
        exchange.countAdopted(bytes);
        return OptionalLong.of(bytes);
      }

      @Override
      public void close() {
        tables.close();
      }
    };
  }

  /**
   * A sink that drops the output. The driver is not notified, so Spark computes the output again if
   * a task needs it.
   */
  record Dropped(BlockKey key) implements Arrival {
    private static final Logger LOG = LoggerFactory.getLogger(Arrival.class);

    @Override
    public void append(ByteBuffer bytes) {
      bytes.position(bytes.limit());
    }

    @Override
    public OptionalLong finish() {
      LOG.info("{} of another executor's GPU was not taken over: no GPU is in use here", key);
      return OptionalLong.empty();
    }

    @Override
    public void close() {
      // It owns nothing.
    }
  }
}
