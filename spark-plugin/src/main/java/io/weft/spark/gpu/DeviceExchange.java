package io.weft.spark.gpu;

import io.weft.collectives.DataType;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.DeviceTiers;
import io.weft.device.cuda.MemoryTier;
import io.weft.device.cuda.NoRoomException;
import io.weft.memory.Bytes;
import io.weft.memory.SharedArena;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.device.DeviceBlockClient;
import io.weft.shuffle.device.DeviceBlockServer;
import io.weft.shuffle.device.DeviceCatalog;
import io.weft.shuffle.device.DeviceOutputSink;
import io.weft.shuffle.device.DevicePartitioner;
import io.weft.shuffle.device.DeviceSlice;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.shuffle.device.DeviceTable;
import io.weft.shuffle.device.HostReadServer;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.config.WeftSettings;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Exchanges blocks in memory of this executor's GPU: owns the kernels, the memory tiers, the blocks
 * and the clients for blocks of other executors. Thread-safe.
 */
public final class DeviceExchange {
  private static final long POLL_NANOS = 1_000_000;
  private static final long UNIT_BYTES = 16L << 20;

  /** The device number of an executor's GPU. */
  private static final int GPU = 1;

  /** A unit's share of the device memory: tasks hold several tables at a time. */
  private static final long SHARES = 32;

  /**
   * Tables per task: a task reads one, makes or uploads another, and packs a third behind the one
   * in flight. While it combines small tables, at most one of their blocks is brought back to the
   * device. A batch whose shape differs from the declared one is uploaded again beside the one that
   * is read, for which the task may have to wait.
   */
  private static final long UNITS_OF_TASK = 4;

  private final SharedGpu gpu;
  private final Duration timeout;
  private final DeviceTiers tiers;
  private final SharedArena arena;
  private final DevicePartitioner partitioner;
  private final DeviceCatalog catalog = new DeviceCatalog();
  private final DeviceBlockServer server;
  private final HostReadServer hostReads;
  private final DeviceBlockClient client;
  private final DeviceDownloads downloads;
  private final TableCombiner smallTables;
  private final DeviceAdmission admission;

  private DeviceExchange(
      SharedGpu gpu,
      Options options,
      DeviceTiers tiers,
      DevicePartitioner partitioner,
      TableCombiner smallTables) {
    this.gpu = gpu;
    this.timeout = options.timeout();
    this.tiers = tiers;
    this.arena = options.exchange().arena();
    this.partitioner = partitioner;
    this.smallTables = smallTables;
    DeviceId own = options.transfers().devices().get(GPU);
    this.server = new DeviceBlockServer(catalog, options.transfers(), own, timeout);
    this.client =
        new DeviceBlockClient(
            catalog, options.exchange().calls()::ask, options.transfers(), own, timeout);
    this.downloads = new DeviceDownloads(gpu.device(), gpu.pinned(), timeout);
    this.hostReads = new HostReadServer(catalog, own.executor(), this::copy, timeout);
    this.admission =
        new DeviceAdmission(
            (int) Math.max(1, tiers.memory().budgetBytes() / (UNITS_OF_TASK * unitBytes())),
            timeout);
  }

  /**
   * The parts of an exchange.
   *
   * @param exchange of this executor, for its arena and its connections to other executors
   * @param transfers of this executor
   * @param deviceBytes limit of GPU memory
   * @param pinnedBytes limit of pinned memory
   * @param timeout limit of each wait
   */
  record Options(
      ExecutorExchange exchange,
      DeviceTransfers transfers,
      long deviceBytes,
      long pinnedBytes,
      Duration timeout) {}

  /** Opens the tiers and loads the kernels. */
  static DeviceExchange open(SharedGpu gpu, Options options) {
    DeviceTiers tiers =
        DeviceTiers.open(
            gpu.device(),
            "exchange",
            options.deviceBytes(),
            options.pinnedBytes(),
            options.exchange().arena(),
            options.timeout());
    DevicePartitioner partitioner = null;
    TableCombiner small = null;
    try {
      partitioner = DevicePartitioner.open(tiers.memory(), gpu.pinned());
      small = TableCombiner.open(gpu, tiers.memory(), unitBytes(tiers), options.timeout());
      return new DeviceExchange(gpu, options, tiers, partitioner, small);
    } catch (RuntimeException e) {
      if (small != null) {
        small.close();
      }
      if (partitioner != null) {
        partitioner.close();
      }
      tiers.close();
      throw e;
    }
  }

  public SharedGpu gpu() {
    return gpu;
  }

  /** The tiers that keep the blocks. */
  public DeviceTiers tiers() {
    return tiers;
  }

  public DevicePartitioner partitioner() {
    return partitioner;
  }

  /** Combines small tables. */
  TableCombiner smallTables() {
    return smallTables;
  }

  /** The blocks of this executor. */
  public DeviceCatalog catalog() {
    return catalog;
  }

  /** Prepares to receive a map output that another executor sends. The caller closes the result. */
  public DeviceOutputSink incoming(BlockKey key) {
    return new DeviceOutputSink(catalog, tiers, arena, key);
  }

  /** The client for the blocks of all executors. */
  public DeviceBlockClient client() {
    return client;
  }

  /** Answers a request of another executor. */
  CompletableFuture<byte[]> answer(byte[] request) {
    return HostReadServer.isFor(request) ? hostReads.answer(request) : server.answer(request);
  }

  /** Why tasks should not use the GPU at the moment; empty if they can. */
  Optional<String> obstacle() {
    return downloads.obstacle();
  }

  /** Host memory for data that goes to the device. */
  SharedArena arena() {
    return arena;
  }

  /**
   * Waits, when a task first uses the GPU, until there is memory for another task. The task keeps
   * its admission until it ends.
   */
  public void admit(TaskContext context) {
    long task = context.taskAttemptId();
    if (admission.admit(task, context::killTaskIfInterrupted)) {
      context.addTaskCompletionListener((TaskCompletionListener) ended -> admission.release(task));
    }
  }

  /** Number of admitted tasks. */
  int tasks() {
    return admission.admitted();
  }

  /**
   * Size in bytes of a table that is large enough for an efficient copy, and leaves room for those
   * of other tasks.
   */
  public long unitBytes() {
    return unitBytes(tiers);
  }

  private static long unitBytes(DeviceTiers tiers) {
    return Math.max(1, Math.min(UNIT_BYTES, tiers.memory().budgetBytes() / SHARES));
  }

  /**
   * Starts to copy a section of a table to the host.
   *
   * @param to address of memory for the section, which must stay valid until the event is released
   * @return complete when the section is on the host
   */
  Event download(DeviceTable table, long offset, long bytes, long to) {
    Event copied =
        downloads.copy(
            "the download of " + table, to, table.address() + offset, bytes, table.ready());
    table.usedUntil(copied);
    return copied;
  }

  /** Copies a piece of a block for a reader that wants it on its host. */
  private byte[] copy(DeviceSlice slice, long offset, int length) {
    byte[] bytes = new byte[length];
    Tensor host = Tensor.allocate(TensorType.of(DataType.INT8, length));
    Event copied = null;
    try {
      copied = startCopy(slice, offset, length, host.address());
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

  /** Spilled data is read in place: a reader on a host needs no room on the device. */
  private Event startCopy(DeviceSlice slice, long offset, int length, long to) {
    // If downloads have failed, the tiers can still copy data of the device.
    Optional<DeviceRows> onDevice =
        downloads.obstacle().isPresent() ? Optional.empty() : slice.leaseIfThere();
    if (onDevice.isEmpty()) {
      return slice.read(offset, length, to);
    }
    try (DeviceRows rows = onDevice.get()) {
      Event copied =
          downloads.copy(
              "a reader's copy of " + slice.layout(),
              to,
              rows.address() + offset,
              length,
              HostEvent.completed("a block"));
      rows.usedUntil(copied);
      return copied;
    }
  }

  /** Returns a new deadline for the device or another executor. */
  public Deadline deadline() {
    return Deadline.after(timeout);
  }

  /** Allocates device memory for work on blocks. */
  public CudaMemory take(long bytes, Runnable cancelCheck) {
    return withRoom(bytes, cancelCheck, () -> tiers.memory().take(bytes));
  }

  /**
   * Runs an action that allocates device memory. If there is no room, it spills blocks and runs the
   * action again.
   *
   * @param bytes estimate of the allocation
   * @param cancelCheck is called between attempts, and throws if the result is no longer needed
   * @throws IllegalStateException if there is no room in time; any other failure is thrown at once
   */
  public <T> T withRoom(long bytes, Runnable cancelCheck, Supplier<T> taking) {
    Deadline deadline = deadline();
    while (true) {
      try {
        return taking.get();
      } catch (NoRoomException | CudaException e) {
        if (e instanceof CudaException cuda && !cuda.isOutOfMemory()) {
          throw e;
        }
        cancelCheck.run();
        if (deadline.expired() || bytes > tiers.memory().budgetBytes()) {
          throw new IllegalStateException(
              ("no room for about %s on %s, where %d tasks hold %s beside blocks of shuffles,"
                      + " see %s: %s")
                  .formatted(
                      Bytes.text(bytes),
                      gpu.device(),
                      admission.admitted(),
                      Bytes.text(
                          Math.max(
                              0, tiers.memory().takenBytes() - tiers.bytes(MemoryTier.DEVICE))),
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

  /** Closes it. Memory that others still use is freed when they return it. */
  void close() {
    client.close();
    server.close();
    hostReads.close();
    downloads.close();
    smallTables.close();
    catalog.close();
    partitioner.close();
    tiers.close();
  }

  /**
   * Limits the number of tasks that use a device at a time. A task holds device memory that cannot
   * be spilled while it waits for more, so too many tasks could block each other. After a timeout a
   * task continues without admission, because admitted tasks may be waiting for it, as in a barrier
   * stage. Thread-safe.
   */
  static final class DeviceAdmission {
    private static final Logger LOG = LoggerFactory.getLogger(DeviceAdmission.class);
    private static final long POLL_MILLIS = 100;

    private final int most;
    private final Duration timeout;
    private final Semaphore free;

    /** Whether each task is admitted; false if it continues without admission. */
    private final Map<Long, Boolean> tasks = new ConcurrentHashMap<>();

    /**
     * Starts without tasks.
     *
     * @param most tasks at a time, 1 or more
     * @param timeout limit of a task's wait
     */
    DeviceAdmission(int most, Duration timeout) {
      this.most = most;
      this.timeout = timeout;
      this.free = new Semaphore(most, true);
    }

    /**
     * Waits for admission.
     *
     * @param cancelCheck is called during the wait, and throws if the task is to stop
     * @return whether the task is new, so the caller must report its end
     */
    boolean admit(long task, Runnable cancelCheck) {
      if (tasks.containsKey(task)) {
        return false;
      }
      Deadline deadline = Deadline.after(timeout);
      boolean admitted = acquired();
      while (!admitted) {
        cancelCheck.run();
        if (deadline.expired()) {
          LOG.warn("Task {} continues beside the {} for which the GPU has memory", task, most);
          break;
        }
        admitted = acquired();
      }
      tasks.put(task, admitted);
      return true;
    }

    private boolean acquired() {
      try {
        return free.tryAcquire(POLL_MILLIS, TimeUnit.MILLISECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("interrupted while waiting for admission to the GPU", e);
      }
    }

    /** Ends the admission of a task that has ended. */
    void release(long task) {
      if (Boolean.TRUE.equals(tasks.remove(task))) {
        free.release();
      }
    }

    /** Number of tasks that use the device. */
    int admitted() {
      return tasks.size();
    }
  }
}
