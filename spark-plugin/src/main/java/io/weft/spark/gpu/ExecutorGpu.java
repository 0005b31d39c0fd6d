package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.device.HostReadClient;
import io.weft.shuffle.device.HostReadServer;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.spark.config.Activation;
import io.weft.spark.transfers.WeftTransfers;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * The GPU of this executor, or the reason why it has none. Its CUDA context is created when the
 * first task asks for it, so an executor without GPU tasks uses no GPU memory. Thread-safe.
 */
public final class ExecutorGpu implements AutoCloseable {
  private static volatile ExecutorGpu running;

  private final Options options;
  private final RemoteDeviceOutputs held;
  private SharedGpu opened;

  /**
   * Read without the monitor, which is held while a GPU is opened, by threads that must not wait.
   */
  private volatile DeviceExchange exchange;

  /** Why the GPU could not be opened; the next attempt is made after a delay. */
  private IllegalStateException failure;

  private Deadline untilTriedAgain;
  private boolean closed;

  /** The memory of the closed exchange, which others may still use. */
  private Optional<CudaMemoryPool> exchangeMemory = Optional.empty();

  /**
   * The parts of an executor's GPU.
   *
   * @param gpu the GPU that the executor announced
   * @param libraries where the CUDA driver is
   * @param memoryBytes limit of GPU memory for feeds
   * @param exchangeBytes limit of GPU memory for exchanges between GPUs
   * @param pinnedBytes limit of pinned memory for spilled blocks
   * @param timeout limit of each wait in such an exchange
   */
  public record Options(
      String executorId,
      GpuEnd gpu,
      ProbeOptions libraries,
      ExecutorExchange exchange,
      long memoryBytes,
      long exchangeBytes,
      long pinnedBytes,
      Duration timeout) {}

  /** Creates a GPU that is not opened yet. */
  public ExecutorGpu(Options options) {
    this.options = options;
    this.held = new RemoteDeviceOutputs(hostReads(), options.timeout().multipliedBy(2));
  }

  /** Returns the GPU of the executor in this JVM, if Weft runs. */
  public static Optional<ExecutorGpu> running() {
    return Optional.ofNullable(running);
  }

  /**
   * Returns the GPU of the executor in this JVM.
   *
   * @throws IllegalStateException if Weft's plugin is off
   */
  public static ExecutorGpu current() {
    return running()
        .orElseThrow(
            () ->
                new IllegalStateException(
                    ("No executor of Weft runs in this JVM. Is spark.plugins set to %s, and has the"
                            + " application not been stopped?")
                        .formatted(Activation.PLUGIN)));
  }

  /**
   * Registers it: tasks of this JVM find it, and others can request its blocks, until it is closed.
   */
  public void start() {
    running = this;
    options.exchange().serve(this::answer);
  }

  private CompletableFuture<byte[]> answer(byte[] request) {
    DeviceExchange serving = exchange;
    if (serving != null) {
      return serving.answer(request);
    }
    try {
      return CompletableFuture.completedFuture(
          HostReadServer.answerWithoutBlocks(request, options.executorId()));
    } catch (RuntimeException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  /** Returns the exchange between GPUs, if this executor has opened it. */
  public Optional<DeviceExchange> openExchange() {
    return Optional.ofNullable(exchange);
  }

  /** The client for blocks of other executors' GPUs; it needs no GPU here. */
  public HostReadClient hostReads() {
    return new HostReadClient(
        (executor, request) -> options.exchange().calls().ask(executor, request),
        options.executorId());
  }

  /** The map outputs on other executors' GPUs. */
  public RemoteDeviceOutputs remoteOutputs() {
    return held;
  }

  /** Why tasks cannot use a GPU here; empty if they can. */
  public Optional<String> obstacle() {
    return options.gpu().isThere()
        ? Optional.empty()
        : Optional.of("executor " + options.executorId() + " has " + options.gpu());
  }

  /**
   * Opens the GPU on the first call.
   *
   * @return valid until the executor ends
   * @throws IllegalStateException if there is none, or it cannot be opened, with the reason
   */
  public synchronized SharedGpu open() {
    obstacle()
        .ifPresent(
            why -> {
              throw new IllegalStateException(why);
            });
    if (closed) {
      throw new IllegalStateException(
          "executor %s ends: %s was closed".formatted(options.executorId(), options.gpu()));
    }
    if (opened == null) {
      requireNoFailure();
      try {
        opened = SharedGpu.open(options.libraries(), options.gpu().uuid(), options.memoryBytes());
      } catch (UnavailableLibraryException | CudaException | IllegalArgumentException e) {
        throw cannotOpen(e);
      }
    }
    return opened;
  }

  /**
   * Opens the exchange between GPUs on the first call.
   *
   * @throws IllegalStateException as {@link #open}, or if its kernels cannot be loaded
   */
  public DeviceExchange exchange() {
    DeviceExchange current = exchange;
    return current == null ? openedExchange() : current;
  }

  private synchronized DeviceExchange openedExchange() {
    SharedGpu gpu = open();
    if (exchange == null) {
      requireNoFailure();
      try {
        exchange =
            DeviceExchange.open(
                gpu,
                new DeviceExchange.Options(
                    options.exchange(),
                    WeftTransfers.transfers(),
                    options.exchangeBytes(),
                    options.pinnedBytes(),
                    options.timeout()));
      } catch (CudaException | UnavailableLibraryException e) {
        throw cannotOpen(e);
      }
    }
    return exchange;
  }

  private IllegalStateException cannotOpen(RuntimeException cause) {
    failure =
        new IllegalStateException(
            "executor %s cannot use %s: %s"
                .formatted(options.executorId(), options.gpu(), cause.getMessage()),
            cause);
    untilTriedAgain = Deadline.after(options.timeout());
    return failure;
  }

  /** Rejects a new attempt soon after a failure: even a failed attempt takes seconds. */
  private void requireNoFailure() {
    if (failure != null && !untilTriedAgain.expired()) {
      throw new IllegalStateException(failure.getMessage(), failure);
    }
  }

  /** Why there are no exchanges between GPUs here; empty if there are. */
  public String exchangeObstacle() {
    try {
      return exchange().obstacle().orElse("");
    } catch (IllegalStateException e) {
      return e.getMessage();
    }
  }

  /** Frees the blocks of a shuffle on the GPU. */
  public void removeShuffle(int shuffleId) {
    held.forget(shuffleId);
    openExchange().ifPresent(kept -> kept.catalog().removeShuffle(shuffleId));
  }

  /**
   * Ends the exchange: nothing can be opened here any more. Call it before the transfers are
   * closed, which end the loans of its memory, and {@link #close} after that. Idempotent.
   */
  public void closeExchange() {
    if (running == this) {
      running = null;
    }
    DeviceExchange last;
    synchronized (this) {
      last = exchange;
      exchange = null;
      closed = true;
      exchangeMemory = last == null ? exchangeMemory : Optional.of(last.tiers().memory());
    }
    held.close();
    if (last != null) {
      last.close();
    }
  }

  /** Frees everything except memory that others still use. */
  @Override
  public void close() {
    closeExchange();
    SharedGpu last;
    Optional<CudaMemoryPool> lastMemory;
    synchronized (this) {
      last = opened;
      opened = null;
      lastMemory = exchangeMemory;
    }
    if (last != null) {
      last.close(lastMemory);
    }
  }
}
