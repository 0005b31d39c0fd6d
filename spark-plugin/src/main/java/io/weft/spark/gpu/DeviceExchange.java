package io.weft.spark.gpu;

import io.weft.catalog.BlockKey;
import io.weft.collectives.buffer.DataType;
import io.weft.crosshost.CrossHostTransfers;
import io.weft.crosshost.DeviceId;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceTiers;
import io.weft.deviceblocks.DeviceBlockClient;
import io.weft.deviceblocks.DeviceBlockServer;
import io.weft.deviceblocks.DeviceCatalog;
import io.weft.deviceblocks.DeviceRows;
import io.weft.deviceblocks.DeviceSlice;
import io.weft.deviceblocks.HostReadServer;
import io.weft.deviceblocks.IncomingTables;
import io.weft.exchange.ExecutorExchange;
import io.weft.memory.Bytes;
import io.weft.memory.SharedArena;
import io.weft.spark.config.WeftSettings;
import io.weft.table.DevicePartitioner;
import io.weft.table.DeviceTable;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * Exchanges whose blocks lie in memory of this executor's GPU: its kernels, its tiers, its blocks
 * and the way to those of others. Thread-safe.
 */
public final class DeviceExchange {
  private static final long POLL_NANOS = 1_000_000;
  private static final long UNIT_BYTES = 16L << 20;

  /** Of the memory on the device: tasks hold several tables at a time. */
  private static final long SHARES = 32;

  private final OpenedGpu gpu;
  private final Duration patience;
  private final DeviceTiers tiers;
  private final SharedArena arena;
  private final DevicePartitioner partitioner;
  private final DeviceCatalog catalog = new DeviceCatalog();
  private final DeviceBlockServer server;
  private final HostReadServer hostReads;
  private final DeviceBlockClient client;
  private final DeviceDownloads downloads;

  private DeviceExchange(
      OpenedGpu gpu, Options options, DeviceTiers tiers, DevicePartitioner partitioner) {
    this.gpu = gpu;
    this.patience = options.patience();
    this.tiers = tiers;
    this.arena = options.exchange().arena();
    this.partitioner = partitioner;
    DeviceId own = options.transfers().devices().get(GPU);
    this.server = new DeviceBlockServer(catalog, options.transfers(), own, patience);
    this.client =
        new DeviceBlockClient(
            catalog, options.exchange().calls()::ask, options.transfers(), own, patience);
    this.downloads = new DeviceDownloads(gpu.device(), gpu.pinned(), patience);
    this.hostReads = new HostReadServer(catalog, own.executor(), this::copy, patience);
  }

  /** The number of an executor's GPU among its devices. */
  private static final int GPU = 1;

  /**
   * What an exchange is made of.
   *
   * @param exchange of this executor, for its arena and the way to other executors
   * @param transfers of this executor
   * @param deviceBytes the most memory of the GPU
   * @param pinnedBytes the most pinned memory
   * @param patience the most that anything waits
   */
  record Options(
      ExecutorExchange exchange,
      CrossHostTransfers transfers,
      long deviceBytes,
      long pinnedBytes,
      Duration patience) {}

  /** Opens tiers and loads the kernels. */
  static DeviceExchange open(OpenedGpu gpu, Options options) {
    DeviceTiers tiers =
        DeviceTiers.open(
            gpu.device(),
            "exchange",
            options.deviceBytes(),
            options.pinnedBytes(),
            options.exchange().arena(),
            options.patience());
    try {
      DevicePartitioner partitioner = DevicePartitioner.open(tiers.memory(), gpu.pinned());
      return new DeviceExchange(gpu, options, tiers, partitioner);
    } catch (RuntimeException e) {
      tiers.close();
      throw e;
    }
  }

  public OpenedGpu gpu() {
    return gpu;
  }

  /** Where blocks are kept. */
  public DeviceTiers tiers() {
    return tiers;
  }

  public DevicePartitioner partitioner() {
    return partitioner;
  }

  /** The blocks of this executor. */
  public DeviceCatalog catalog() {
    return catalog;
  }

  /** Prepares to take over a map output that another executor sends. The caller closes it. */
  public IncomingTables incoming(BlockKey key) {
    return new IncomingTables(catalog, tiers, arena, key);
  }

  /** The way to the blocks of all executors. */
  public DeviceBlockClient client() {
    return client;
  }

  /** Answers another executor. */
  CompletableFuture<byte[]> answer(byte[] question) {
    return HostReadServer.isFor(question) ? hostReads.answer(question) : server.answer(question);
  }

  /** Memory of the host for what goes to the device. */
  SharedArena arena() {
    return arena;
  }

  /** Bytes of a table that pays for a copy, and leaves room for those of other tasks. */
  public long unitBytes() {
    return Math.max(1, Math.min(UNIT_BYTES, tiers.memory().budgetBytes() / SHARES));
  }

  /**
   * Starts to copy a table to the host.
   *
   * @param to address of memory for the whole table, which has to stay until the event is released
   * @return complete when the table is there
   */
  public Event download(DeviceTable table, long to) {
    Event copied =
        downloads.copy(
            "the download of " + table, to, table.address(), table.bytes(), table.ready());
    table.usedUntil(copied);
    return copied;
  }

  /** A piece of a block, for a reader that wants it on its host. */
  private byte[] copy(DeviceSlice slice, long offset, int length) {
    byte[] bytes = new byte[length];
    Tensor host = Tensor.allocate(TensorType.of(DataType.INT8, length));
    Event copied = null;
    try (DeviceRows rows = withRoom(slice.leasedBytes(), () -> {}, slice::lease)) {
      copied =
          downloads.copy(
              "a reader's copy of " + slice.layout(),
              host.address(),
              rows.address() + offset,
              length,
              HostEvent.completed("a block"));
      rows.usedUntil(copied);
      copied.await(deadline());
      host.byteBuffer().get(bytes);
    } finally {
      if (copied == null) {
        host.close();
      } else {
        copied.whenReleased(host::close);
      }
    }
    return bytes;
  }

  /** A deadline for the device, or another executor. */
  public Deadline deadline() {
    return Deadline.after(patience);
  }

  /** Takes memory on the device for work on blocks. */
  public CudaMemory take(long bytes, Runnable wanted) {
    return withRoom(bytes, wanted, () -> tiers.memory().take(bytes));
  }

  /**
   * Does something that takes memory on the device; where there is none, blocks give way and it is
   * done again.
   *
   * @param bytes about as many as it takes
   * @param wanted is asked in between, and throws when nobody wants the result any more
   * @throws IllegalStateException if there is no room in time
   */
  public <T> T withRoom(long bytes, Runnable wanted, Supplier<T> taking) {
    Deadline deadline = deadline();
    while (true) {
      try {
        return taking.get();
      } catch (IllegalStateException | CudaException e) {
        wanted.run();
        if (deadline.expired() || bytes > tiers.memory().budgetBytes()) {
          throw new IllegalStateException(
              "no room for about %s on %s, see %s: %s"
                  .formatted(
                      Bytes.text(bytes),
                      gpu.device(),
                      WeftSettings.GPU_EXCHANGE_MEMORY,
                      e.getMessage()),
              e);
        }
        if (tiers.spill(bytes) == 0) {
          LockSupport.parkNanos(this, POLL_NANOS);
        }
      }
    }
  }

  /** Ends it; false when some of its memory is still in use. */
  boolean close() {
    client.close();
    server.close();
    hostReads.close();
    downloads.close();
    catalog.close();
    partitioner.close();
    tiers.close();
    return tiers.memory().takenBytes() == 0;
  }
}
