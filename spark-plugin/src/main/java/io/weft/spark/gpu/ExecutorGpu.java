package io.weft.spark.gpu;

import io.weft.device.cuda.CudaException;
import io.weft.device.library.UnavailableLibraryException;
import io.weft.device.probe.ProbeOptions;
import io.weft.peer.GpuEnd;
import io.weft.spark.config.Activation;
import java.util.Optional;

/**
 * The GPU of this executor, or the reason why it has none. Its context is taken when the first task
 * asks for it, so an executor whose tasks do not takes no memory of it. Thread-safe.
 */
public final class ExecutorGpu implements AutoCloseable {
  private static volatile ExecutorGpu running;

  private final String executorId;
  private final GpuEnd gpu;
  private final ProbeOptions libraries;
  private final long memoryBytes;
  private OpenedGpu opened;
  private boolean closed;

  /**
   * A GPU that is not opened yet.
   *
   * @param gpu what the executor announced
   * @param libraries where the driver is
   * @param memoryBytes the most memory of it that tasks take
   */
  public ExecutorGpu(String executorId, GpuEnd gpu, ProbeOptions libraries, long memoryBytes) {
    this.executorId = executorId;
    this.gpu = gpu;
    this.libraries = libraries;
    this.memoryBytes = memoryBytes;
  }

  /**
   * That of the executor in this JVM.
   *
   * @throws IllegalStateException where Weft's plugin is off
   */
  public static ExecutorGpu current() {
    ExecutorGpu current = running;
    if (current == null) {
      throw new IllegalStateException(
          "No executor of Weft runs in this JVM. Is spark.plugins set to %s, and has the application not been stopped?"
              .formatted(Activation.PLUGIN));
    }
    return current;
  }

  /** From now on tasks of this JVM find it, until it is closed. */
  public void start() {
    running = this;
  }

  /** Why tasks cannot use a GPU here; empty where they can. */
  public Optional<String> obstacle() {
    return gpu.isThere()
        ? Optional.empty()
        : Optional.of("executor " + executorId + " has " + gpu.toString());
  }

  /**
   * Opens it, the first time.
   *
   * @return valid until the executor ends
   * @throws IllegalStateException where there is none, or it cannot be opened, with the reason
   */
  public synchronized OpenedGpu open() {
    obstacle()
        .ifPresent(
            why -> {
              throw new IllegalStateException(why);
            });
    if (closed) {
      throw new IllegalStateException("executor " + executorId + " ends: " + gpu + " was closed");
    }
    if (opened == null) {
      try {
        opened = OpenedGpu.open(libraries, gpu.uuid(), memoryBytes);
      } catch (UnavailableLibraryException | CudaException | IllegalArgumentException e) {
        throw new IllegalStateException(
            "executor " + executorId + " cannot open " + gpu + ": " + e.getMessage(), e);
      }
    }
    return opened;
  }

  /** Gives everything back, but memory that others still use. */
  @Override
  public void close() {
    if (running == this) {
      running = null;
    }
    OpenedGpu last;
    synchronized (this) {
      last = opened;
      opened = null;
      closed = true;
    }
    if (last != null) {
      last.close();
    }
  }
}
