package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.DeviceUploads;
import io.weft.device.cuda.IpcExport;
import io.weft.device.cuda.IpcHandle;
import io.weft.device.cuda.NoRoomException;
import io.weft.device.probe.ProbeOptions;
import io.weft.memory.Bytes;
import io.weft.spark.config.WeftSettings;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A GPU whose context is open, shared by the tasks of this executor. Thread-safe. */
public final class SharedGpu {
  private static final Logger LOG = LoggerFactory.getLogger(SharedGpu.class);
  private static final long PINNED_BYTES = 512L << 20;
  private static final long PIECE_BYTES = 8L << 20;
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final long POLL_NANOS = 500_000;
  private static final int MAX_MODULES = 256;
  private static final String ADVICE =
      "put fewer rows on it, by more ranks on more executors or by smaller batches, or end exports";

  private final CudaDevice device;
  private final CudaMemoryPool memory;
  private final CudaMemoryPool pinned;
  private final long memoryBytes;
  private final Set<ExportedMemory> shared = ConcurrentHashMap.newKeySet();

  /** The kernels of programs, by their PTX. */
  private final Map<String, CudaModule> modules = new ConcurrentHashMap<>();

  /** Waits for foreign streams; opened on first use. */
  private CudaLane returns;

  private boolean closed;

  private SharedGpu(
      CudaDevice device, CudaMemoryPool memory, CudaMemoryPool pinned, long memoryBytes) {
    this.device = device;
    this.memory = memory;
    this.pinned = pinned;
    this.memoryBytes = memoryBytes;
  }

  static SharedGpu open(ProbeOptions libraries, String uuid, long memoryBytes) {
    CudaDevice device = CudaLibrary.load(libraries).open(UUID.fromString(uuid));
    return new SharedGpu(
        device,
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, memoryBytes),
        CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, PINNED_BYTES),
        memoryBytes);
  }

  /** Its context; the executor closes it. */
  public CudaDevice device() {
    return device;
  }

  /** Opens a lane for uploads, which the caller closes. */
  public DeviceUploads uploads(String name) {
    return DeviceUploads.open(device, name, pinned, PIECE_BYTES, TIMEOUT);
  }

  /** Bytes of its memory that tasks and exports use. */
  public long memoryTaken() {
    return memory.takenBytes();
  }

  /** Limit of each wait for the device. */
  public Duration timeout() {
    return TIMEOUT;
  }

  /**
   * Allocates memory; while others use up the budget, it waits.
   *
   * @param bytes 1 or more
   * @param cancelCheck is called during the wait, and throws if the memory is no longer needed
   * @throws NoGpuMemoryException if the request exceeds the budget, or there is no room in time
   */
  public CudaMemory take(long bytes, Runnable cancelCheck) {
    requireFits(bytes);
    Deadline deadline = Deadline.after(TIMEOUT);
    while (true) {
      try {
        return memory.take(bytes);
      } catch (NoRoomException | CudaException e) {
        if (e instanceof CudaException cuda && !cuda.isOutOfMemory()) {
          throw e;
        }
        cancelCheck.run();
        if (deadline.expired()) {
          throw new NoGpuMemoryException(
              "there was no room for %s on %s within %s: %s. Of %s, exports hold %s: raise it, or %s"
                  .formatted(
                      Bytes.text(bytes),
                      device,
                      deadline,
                      e.getMessage(),
                      budget(),
                      Bytes.text(shared.stream().mapToLong(each -> each.handle().bytes()).sum()),
                      ADVICE),
              e);
        }
        LockSupport.parkNanos(this, POLL_NANOS);
      }
    }
  }

  /**
   * Checks that so much memory can be there at some time.
   *
   * @throws NoGpuMemoryException if it exceeds the budget, or the GPU
   */
  public void requireFits(long bytes) {
    long all = device.description().memoryBytes();
    if (bytes > memoryBytes) {
      throw new NoGpuMemoryException(
          "%s of memory of %s are more than %s. Raise it, up to what is free of the GPU's %s; or %s"
              .formatted(Bytes.text(bytes), device, budget(), Bytes.text(all), ADVICE),
          null);
    }
    if (bytes > all) {
      throw new NoGpuMemoryException(
          "%s of memory of %s are more than its %s: %s"
              .formatted(Bytes.text(bytes), device, Bytes.text(all), ADVICE),
          null);
    }
  }

  private String budget() {
    return WeftSettings.GPU_MEMORY + "=" + WeftSettings.GPU_MEMORY.format(memoryBytes);
  }

  /**
   * Exports memory to other processes of the host, until it is closed or the executor ends.
   *
   * @param run memory that was allocated here; this call takes ownership
   */
  public ExportedMemory share(CudaMemory run) {
    ExportedMemory made = ExportedMemory.of(run, shared::remove);
    shared.add(made);
    return made;
  }

  /**
   * Runs an action once the device has completed the work that is on a stream now. Blocks until a
   * thread has recorded the stream's state, not until the device is done. Leaves the calling
   * thread's current context unchanged: it may belong to any library. If the device fails first,
   * the action never runs.
   *
   * @param what the work on the stream, for messages
   * @param stream a {@code CUstream} of the GPU's primary context; 0 for the legacy default stream,
   *     which includes all streams that are not created as non-blocking
   * @throws IllegalStateException if the executor has ended
   */
  public void afterWork(String what, long stream, Runnable then) {
    CudaLane lane = returns();
    CudaStream foreign = CudaStream.borrowed(device, "0x" + Long.toHexString(stream), stream);
    Event end =
        lane.submit(
            what,
            () -> {
              try (CudaMark mark = foreign.mark()) {
                lane.stream().waitFor(mark);
              }
            });
    end.whenDone(
        cause -> {
          if (cause == null) {
            then.run();
          } else {
            LOG.warn("{} on {}: what it used is kept", what, foreign, cause);
          }
        });
    if (stream != 0) {
      // The owner of the stream may destroy it as soon as this returns.
      end.awaitRecorded(Deadline.after(TIMEOUT));
    }
  }

  private synchronized CudaLane returns() {
    if (closed) {
      throw new IllegalStateException("the executor of " + device + " has ended");
    }
    if (returns == null) {
      returns = CudaLane.open(device, "returns", TIMEOUT, Lane.Priority.NORMAL);
    }
    return returns;
  }

  private void endReturns() {
    CudaLane lane;
    synchronized (this) {
      closed = true;
      lane = returns;
    }
    if (lane == null) {
      return;
    }
    try {
      lane.drain(Deadline.after(TIMEOUT));
    } catch (EventFailedException | EventTimeoutException e) {
      LOG.warn("{}: foreign streams on {} do not complete", lane, device, e);
    }
    lane.close();
  }

  /**
   * Returns kernels of a program, loaded once.
   *
   * @throws IllegalStateException if the program has loaded too many different ones
   */
  CudaModule kernels(String ptx) {
    CudaModule loaded = modules.get(ptx);
    if (loaded != null) {
      return loaded;
    }
    if (modules.size() >= MAX_MODULES) {
      throw new IllegalStateException(
          ("%d different PTX texts were loaded on %s, and they stay until the executor ends: give"
                  + " kernels parameters instead of a new text for each batch")
              .formatted(MAX_MODULES, device));
    }
    return modules.computeIfAbsent(ptx, text -> CudaModule.load(device, "of the program", text));
  }

  /** Pinned memory for copies. */
  CudaMemoryPool pinned() {
    return pinned;
  }

  /**
   * Frees all resources. The context stays while memory is in use.
   *
   * @param exchange the closed memory of the exchange on this device, if there was one
   */
  void close(Optional<CudaMemoryPool> exchange) {
    endReturns();
    shared.forEach(ExportedMemory::close);
    memory.close();
    pinned.close();
    List<CudaMemoryPool> pools =
        Stream.concat(Stream.of(memory, pinned), exchange.stream()).toList();
    long taken = pools.stream().mapToLong(CudaMemoryPool::takenBytes).sum();
    long lent = pools.stream().mapToLong(CudaMemoryPool::lentBytes).sum();
    if (taken == 0 && lent == 0) {
      modules.values().forEach(CudaModule::close);
      device.close();
    } else {
      LOG.warn(
          "{}: {} are still taken, and {} lent to other processes; its context stays",
          device,
          Bytes.text(taken),
          Bytes.text(lent));
    }
  }

  /** Device memory that other processes of the host may map. Thread-safe. */
  public static final class ExportedMemory implements AutoCloseable {
    private final IpcExport export;
    private final Consumer<ExportedMemory> closed;

    private ExportedMemory(IpcExport export, Consumer<ExportedMemory> closed) {
      this.export = export;
      this.closed = closed;
    }

    /** Exports the memory. The export owns the memory from now on, even if this fails. */
    static ExportedMemory of(CudaMemory memory, Consumer<ExportedMemory> closed) {
      try (memory) {
        return new ExportedMemory(IpcExport.of(memory), closed);
      }
    }

    /** The handle for the other processes. */
    public IpcHandle handle() {
      return export.handle();
    }

    /** Frees the memory; no process may have it mapped any more. Idempotent. */
    @Override
    public void close() {
      export.close();
      closed.accept(this);
    }
  }
}
