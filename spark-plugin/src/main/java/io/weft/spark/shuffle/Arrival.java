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

/** What takes in the bytes of a map output that moves here. For one thread. */
interface Arrival extends AutoCloseable {
  /** Takes the next bytes, all of them. */
  void append(ByteBuffer bytes) throws IOException;

  /**
   * Publishes the output here, after its last byte.
   *
   * @return its bytes; empty where it was not wanted here
   * @throws IOException if bytes are missing or not as they were sent
   */
  OptionalLong finish() throws IOException;

  /** Frees what was not published. */
  @Override
  void close();

  /** To this executor's arena. */
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
   * To this executor's device, where it has exchanged rows before. Else the bytes are dropped:
   * taking up a GPU may take long, and an error here would end the moves of all other outputs.
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

  /** Nobody is told of it, so it is computed again when somebody wants it. */
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
      // It keeps nothing.
    }
  }
}
