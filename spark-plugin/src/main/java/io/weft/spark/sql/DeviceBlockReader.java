package io.weft.spark.sql;

import io.weft.shuffle.device.DeviceBlock;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.peer.Traffic.ReaderTraffic;
import io.weft.shuffle.peer.TrafficReport.Figure;
import io.weft.spark.config.WeftSettings;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.gpu.FetchAhead;
import io.weft.spark.gpu.FetchedTable;
import io.weft.spark.gpu.TableFetch;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.shuffle.SneakyThrow;
import io.weft.spark.sql.DeviceRoute.TaskDevice;
import io.weft.spark.sql.ExchangeMetrics.BatchReadMetrics;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Queue;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads the tables of blocks on GPUs as batches. A batch is valid until the next call of {@code
 * hasNext}, {@code next} or {@code close}. For one task thread.
 */
final class DeviceBlockReader implements Iterator<ColumnarBatch>, AutoCloseable {
  private final StructType schema;
  private final ShuffleBlocks blocks;
  private final TaskContext context;
  private final BatchReadMetrics counted;
  private final Map<DeviceBlock, BlockRequest> requests = new HashMap<>();
  private final Queue<Source> fetches = new ArrayDeque<>();
  private final FetchAhead ahead =
      new FetchAhead(WeftSettings.GPU_FETCH_AHEAD.get(SparkEnv.get().conf()));
  private final ReaderTraffic traffic;
  private FetchedTable current;

  /** A fetch from an executor. */
  private record Source(String executor, TableFetch tables) {}

  /**
   * Creates a reader without fetching.
   *
   * @param blocks creates the exceptions for failed blocks
   * @param traffic counts the bytes that are read
   * @param onDevices map outputs by the executor whose GPU has them
   */
  DeviceBlockReader(
      StructType schema,
      ShuffleBlocks blocks,
      ReaderTraffic traffic,
      Map<String, List<BlockRequest>> onDevices,
      TaskContext context,
      BatchReadMetrics counted) {
    this.schema = schema;
    this.blocks = blocks;
    this.traffic = traffic;
    this.context = context;
    this.counted = counted;
    String own = SparkEnv.get().executorId();
    DeviceExchange device = onDevices.isEmpty() ? null : TaskDevice.find().orElse(null);
    onDevices.forEach(
        (executor, all) -> {
          List<DeviceBlock> wanted = blocksOf(all);
          List<TableFetch> made =
              TableFetch.of(
                  device,
                  executor.equals(own),
                  executor,
                  wanted,
                  context::killTaskIfInterrupted,
                  ahead);
          made.forEach(tables -> fetches.add(new Source(executor, tables)));
          ahead.add(made);
        });
  }

  /** Returns one block per partition, in the order of map outputs and partitions. */
  private List<DeviceBlock> blocksOf(List<BlockRequest> all) {
    List<DeviceBlock> wanted = new ArrayList<>();
    for (BlockRequest request : all) {
      int partitions = Math.max(1, request.endPartition() - request.startPartition());
      for (int p = request.startPartition(); p < request.endPartition(); p++) {
        DeviceBlock block = new DeviceBlock(request.key(), p, request.expectedBytes() / partitions);
        requests.put(block, request);
        wanted.add(block);
      }
    }
    return wanted;
  }

  @Override
  public boolean hasNext() {
    while (!fetches.isEmpty()) {
      ahead.begin();
      if (tried(fetches.peek().tables()::hasNext)) {
        return true;
      }
      fetches.remove();
      ahead.closeFirst();
    }
    closeCurrent(); // The task may run for long, and a table in use cannot be spilled.
    return false;
  }

  @Override
  public ColumnarBatch next() {
    if (!hasNext()) {
      throw new NoSuchElementException("there are no more tables");
    }
    closeCurrent();
    Source source = fetches.peek();
    current = tried(source.tables()::next);
    count(source.executor(), current.bytes());
    ColumnarBatch batch = current.batch(schema);
    count(current, batch.numRows());
    return batch;
  }

  private void count(String executor, long bytes) {
    int shuffle = blocks.requests().get(0).key().shuffleId();
    traffic.read(shuffle, Figure.GPU, executor, blocks.locations().get(executor).host(), bytes);
  }

  private void count(FetchedTable table, int rows) {
    if (table.isLocal()) {
      counted.local(table.tables(), table.bytes());
    } else {
      counted.remote(table.tables(), table.tables(), table.bytes());
    }
    if (table.isOnDevice()) {
      counted.deviceBatch(rows);
    } else {
      counted.batch(rows);
    }
  }

  /** A step of a fetch. */
  private interface Step<T> {
    T run() throws DeviceFetchException;
  }

  private <T> T tried(Step<T> step) {
    long start = System.nanoTime();
    try {
      T made = step.run();
      counted.waited(System.nanoTime() - start);
      return made;
    } catch (DeviceFetchException e) {
      context.killTaskIfInterrupted();
      BlockRequest request = requests.get(e.block());
      ExecutorGpu.current().remoteOutputs().forget(request.key().shuffleId());
      throw SneakyThrow.<RuntimeException>raise(
          blocks.failure(
              new BlockFetchException(request, e.block().partition(), e.getMessage(), e)));
    }
  }

  private void closeCurrent() {
    if (current != null) {
      current.close();
      current = null;
    }
  }

  @Override
  public void close() {
    closeCurrent();
    fetches.clear();
    ahead.close();
    traffic.flush();
  }
}
