package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.device.cuda.CudaException;
import io.weft.device.library.UnavailableLibraryException;
import io.weft.device.probe.ProbeOptions;
import io.weft.deviceblocks.HostReadClient;
import io.weft.deviceblocks.HostReadServer;
import io.weft.exchange.ExecutorExchange;
import io.weft.peer.GpuEnd;
import io.weft.spark.config.Activation;
import io.weft.spark.transfers.WeftTransfers;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * The GPU of this executor, or the reason why it has none. Its context is taken when the first task
 * asks for it, so an executor whose tasks do not takes no memory of it. Thread-safe.
 */
public final class ExecutorGpu implements AutoCloseable {
  private static volatile ExecutorGpu running;

  private final Options options;
  private final HeldOutputs held;
  private OpenedGpu opened;

  /** Read without the monitor, under which a GPU is opened, by those that must not wait for it. */
  private volatile DeviceExchange exchange;

  /** Why it could not be opened; it is tried again when the time is over. */
  private IllegalStateException failure;

  private Deadline untilTriedAgain;
  private boolean closed;

  /**
   * What it is made of.
   *
   * @param gpu what the executor announced
   * @param libraries where the driver is
   * @param memoryBytes the most memory of it that feeds take
   * @param exchangeBytes the most memory of it for exchanges between GPUs
   * @param pinnedBytes the most pinned memory for what these spill
   * @param patience the most that such an exchange waits
   */
  public record Options(
      String executorId,
      GpuEnd gpu,
      ProbeOptions libraries,
      ExecutorExchange exchange,
      long memoryBytes,
      long exchangeBytes,
      long pinnedBytes,
      Duration patience) {}

  /** A GPU that is not opened yet. */
  public ExecutorGpu(Options options) {
    this.options = options;
    this.held = new HeldOutputs(hostReads(), options.patience().multipliedBy(2));
  }

  /** That of the executor in this JVM, if Weft runs. */
  public static Optional<ExecutorGpu> running() {
    return Optional.ofNullable(running);
  }

  /**
   * That of the executor in this JVM.
   *
   * @throws IllegalStateException where Weft's plugin is off
   */
  public static ExecutorGpu current() {
    return running()
        .orElseThrow(
            () ->
                new IllegalStateException(
                    "No executor of Weft runs in this JVM. Is spark.plugins set to %s, and has the application not been stopped?"
                        .formatted(Activation.PLUGIN)));
  }

  /** From now on tasks of this JVM find it, and others ask it for blocks, until it is closed. */
  public void start() {
    running = this;
    options.exchange().serve(this::answer);
  }

  private CompletableFuture<byte[]> answer(byte[] question) {
    DeviceExchange serving = exchange;
    if (serving != null) {
      return serving.answer(question);
    }
    try {
      return CompletableFuture.completedFuture(
          HostReadServer.answerWithoutBlocks(question, options.executorId()));
    } catch (RuntimeException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  /** Exchanges between GPUs, if this executor takes part in any so far. */
  public Optional<DeviceExchange> openExchange() {
    return Optional.ofNullable(exchange);
  }

  /** The way to blocks of other executors' GPUs that needs none here. */
  public HostReadClient hostReads() {
    return new HostReadClient(
        (executor, question) -> options.exchange().calls().ask(executor, question),
        options.executorId());
  }

  /** What other executors have on their GPUs. */
  public HeldOutputs heldOutputs() {
    return held;
  }

  /** Why tasks cannot use a GPU here; empty where they can. */
  public Optional<String> obstacle() {
    return options.gpu().isThere()
        ? Optional.empty()
        : Optional.of("executor " + options.executorId() + " has " + options.gpu());
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
      throw new IllegalStateException(
          "executor %s ends: %s was closed".formatted(options.executorId(), options.gpu()));
    }
    if (opened == null) {
      requireNoFailure();
      try {
        opened = OpenedGpu.open(options.libraries(), options.gpu().uuid(), options.memoryBytes());
      } catch (UnavailableLibraryException | CudaException | IllegalArgumentException e) {
        throw cannotOpen(e);
      }
    }
    return opened;
  }

  /**
   * Opens it for exchanges between GPUs, the first time.
   *
   * @throws IllegalStateException as {@link #open}, or where its kernels cannot be loaded
   */
  public DeviceExchange exchange() {
    DeviceExchange there = exchange;
    return there == null ? openedExchange() : there;
  }

  private synchronized DeviceExchange openedExchange() {
    OpenedGpu gpu = open();
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
                    options.patience()));
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
    untilTriedAgain = Deadline.after(options.patience());
    return failure;
  }

  /** Opening takes seconds also where it fails: not each task is to try. */
  private void requireNoFailure() {
    if (failure != null && !untilTriedAgain.expired()) {
      throw new IllegalStateException(failure.getMessage(), failure);
    }
  }

  /** Why there are no exchanges between GPUs here; empty where there are. */
  public String exchangeObstacle() {
    try {
      return exchange().obstacle().orElse("");
    } catch (IllegalStateException e) {
      return e.getMessage();
    }
  }

  /** Gives back what a shuffle has on the GPU. */
  public void removeShuffle(int shuffleId) {
    held.forget(shuffleId);
    openExchange().ifPresent(kept -> kept.catalog().removeShuffle(shuffleId));
  }

  /** Gives everything back, but memory that others still use. */
  @Override
  public void close() {
    if (running == this) {
      running = null;
    }
    OpenedGpu last;
    DeviceExchange lastExchange;
    synchronized (this) {
      last = opened;
      lastExchange = exchange;
      opened = null;
      exchange = null;
      closed = true;
    }
    held.close();
    boolean through = lastExchange == null || lastExchange.close();
    if (last != null) {
      last.close(through);
    }
  }
}
