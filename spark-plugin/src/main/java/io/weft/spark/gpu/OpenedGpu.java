package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.DeviceUploads;
import io.weft.device.probe.ProbeOptions;
import io.weft.memory.Bytes;
import io.weft.spark.config.WeftSettings;
import java.time.Duration;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A GPU that tasks of this executor use. Thread-safe. */
public final class OpenedGpu {
  private static final Logger LOG = LoggerFactory.getLogger(OpenedGpu.class);
  private static final long PINNED_BYTES = 512L << 20;
  private static final long PIECE_BYTES = 8L << 20;
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  private static final long POLL_NANOS = 500_000;

  private final CudaDevice device;
  private final CudaMemoryPool memory;
  private final CudaMemoryPool pinned;
  private final long memoryBytes;
  private final Set<SharedRun> shared = ConcurrentHashMap.newKeySet();

  private OpenedGpu(
      CudaDevice device, CudaMemoryPool memory, CudaMemoryPool pinned, long memoryBytes) {
    this.device = device;
    this.memory = memory;
    this.pinned = pinned;
    this.memoryBytes = memoryBytes;
  }

  static OpenedGpu open(ProbeOptions libraries, String uuid, long memoryBytes) {
    CudaDevice device = CudaLibrary.load(libraries).open(UUID.fromString(uuid));
    return new OpenedGpu(
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
    return DeviceUploads.open(device, name, pinned, PIECE_BYTES, PATIENCE);
  }

  /** Bytes that tasks and exports have taken of its memory. */
  public long memoryTaken() {
    return memory.takenBytes();
  }

  /** How long one may wait for the device. */
  public Duration patience() {
    return PATIENCE;
  }

  /**
   * Takes memory; where others use up the budget, waits until they give some back.
   *
   * @param bytes 1 or more
   * @param wanted is asked while it waits, and throws when nobody wants the memory any more
   * @throws IllegalStateException when there is no room for so much, or not in time
   */
  public CudaMemory take(long bytes, Runnable wanted) {
    if (bytes > memoryBytes) {
      throw new IllegalStateException(
          "%s of memory of %s are more than %s=%s"
              .formatted(
                  Bytes.text(bytes),
                  device,
                  WeftSettings.GPU_MEMORY,
                  WeftSettings.GPU_MEMORY.format(memoryBytes)));
    }
    Deadline deadline = Deadline.after(PATIENCE);
    while (true) {
      try {
        return memory.take(bytes);
      } catch (IllegalStateException | CudaException e) {
        wanted.run();
        if (deadline.expired()) {
          throw new IllegalStateException(
              "there was no room for %s on %s within %s, see %s: %s"
                  .formatted(
                      Bytes.text(bytes), device, deadline, WeftSettings.GPU_MEMORY, e.getMessage()),
              e);
        }
        LockSupport.parkNanos(this, POLL_NANOS);
      }
    }
  }

  /**
   * Exports memory to other processes of the host, until it is closed or the executor ends.
   *
   * @param run what was taken here; given away
   */
  public SharedRun share(CudaMemory run) {
    SharedRun made = SharedRun.of(run, shared::remove);
    shared.add(made);
    return made;
  }

  /** Pinned memory for copies. */
  CudaMemoryPool pinned() {
    return pinned;
  }

  /**
   * Gives everything back.
   *
   * @param through whether nothing else uses the device any more
   */
  void close(boolean through) {
    shared.forEach(SharedRun::close);
    long taken = memory.takenBytes() + pinned.takenBytes();
    memory.close();
    pinned.close();
    if (taken == 0 && through) {
      device.close();
    } else {
      LOG.warn("{} on {} are still in use; its context stays", Bytes.text(taken), device);
    }
  }
}
