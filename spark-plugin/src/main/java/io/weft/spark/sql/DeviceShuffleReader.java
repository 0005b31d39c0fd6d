package io.weft.spark.sql;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.device.DeviceSlice;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.peer.Traffic.ReaderTraffic;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.gpu.RemoteDeviceOutputs;
import io.weft.spark.shuffle.ShuffleBlocks;
import io.weft.spark.shuffle.SneakyThrow;
import io.weft.spark.sql.ExchangeMetrics.BatchReadMetrics;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * Reads the blocks of one reduce task whose map tasks wrote to GPUs, or to hosts without a GPU.
 * First it reads the blocks on GPUs, as batches on this executor's GPU if it has one, then the
 * other blocks. A batch is valid until the next one is requested. All memory is released when the
 * task ends. For one task thread.
 *
 * @param <K> unused
 * @param <C> batches
 */
final class DeviceShuffleReader<K, C> implements ShuffleReader<K, C> {
  private final ColumnarShuffleDependency dependency;
  private final ShuffleBlocks blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ExecutorExchange exchange;

  /** Creates a reader. Fetching starts with {@link #read()}. */
  DeviceShuffleReader(
      ColumnarShuffleDependency dependency,
      ShuffleBlocks blocks,
      TaskContext context,
      ShuffleReadMetricsReporter metrics,
      ExecutorExchange exchange) {
    this.dependency = dependency;
    this.blocks = blocks;
    this.context = context;
    this.metrics = metrics;
    this.exchange = exchange;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Iterator<Product2<K, C>> read() {
    DeviceBlocks found = DeviceBlocks.of(blocks, context);
    BatchReadMetrics counted = new BatchReadMetrics(metrics, dependency.exchangeMetrics());
    DeviceBlockReader onDevices =
        new DeviceBlockReader(
            dependency.schema(),
            blocks,
            new ReaderTraffic(exchange.traffic()),
            found.onDevices(),
            context,
            counted);
    context.addTaskCompletionListener(
        (TaskCompletionListener)
            ended -> {
              onDevices.close();
              ended.taskMetrics().mergeShuffleReadMetrics();
            });
    Iterator<Product2<K, C>> first =
        new InterruptibleIterator<>(
            context, (Iterator<Product2<K, C>>) (Object) new Records(onDevices));
    return found.onHosts().requests().isEmpty()
        ? first
        : first.concat(
            () ->
                new ColumnarShuffleReader<K, C>(
                        dependency, found.onHosts(), context, metrics, exchange)
                    .read());
  }

  /** The batches as shuffle records. */
  private static final class Records extends AbstractIterator<Product2<Object, ColumnarBatch>> {
    private final DeviceBlockReader batches;

    Records(DeviceBlockReader batches) {
      this.batches = batches;
    }

    @Override
    public boolean hasNext() {
      return batches.hasNext();
    }

    @Override
    public Product2<Object, ColumnarBatch> next() {
      return new scala.Tuple2<>(0, batches.next());
    }
  }

  /**
   * The blocks of a reduce task, by location. A map task writes to its executor's GPU if it can,
   * else to its host, so the reader asks the executors.
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
      blocks.lookUpExecutors(context);
      ExecutorGpu gpu = ExecutorGpu.current();
      return of(
          blocks,
          SparkEnv.get().executorId(),
          key ->
              gpu.openExchange().map(own -> DeviceSlice.isHeld(own.catalog(), key)).orElse(false),
          gpu.remoteOutputs(),
          context::killTaskIfInterrupted);
    }

    /**
     * Asks the executors that have map outputs. Copies of outputs are on hosts.
     *
     * @param own this executor, which is not asked
     * @param held tests whether an output is on this executor's GPU
     * @param killCheck called while it waits; throws if the task was killed
     */
    static DeviceBlocks of(
        ShuffleBlocks blocks,
        String own,
        Predicate<BlockKey> held,
        RemoteDeviceOutputs others,
        Runnable killCheck) {
      Map<String, List<BlockKey>> asked = new LinkedHashMap<>();
      for (BlockRequest request : blocks.requests()) {
        if (!request.executorId().equals(own) && !blocks.isCopied(request)) {
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
                : found.getOrDefault(executor, Set.of()).contains(request.key());
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
        RemoteDeviceOutputs others,
        Runnable killCheck) {
      try {
        return others.find(asked, killCheck);
      } catch (RemoteDeviceOutputs.UnansweredException e) {
        killCheck.run();
        BlockRequest first =
            blocks.requests().stream()
                .filter(request -> request.executorId().equals(e.executor()))
                .findFirst()
                .orElseThrow();
        throw SneakyThrow.<RuntimeException>raise(
            blocks.failure(
                new BlockFetchException(first, first.startPartition(), e.getMessage(), e)));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        killCheck.run();
        throw new IllegalStateException("interrupted while asking executors " + asked.keySet(), e);
      }
    }
  }
}
