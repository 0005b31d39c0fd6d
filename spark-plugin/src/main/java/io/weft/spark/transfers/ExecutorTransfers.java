package io.weft.spark.transfers;

import io.weft.collectives.CommunicatorFactory;
import io.weft.crosshost.CrossHostTransfers;
import io.weft.crosshost.GpuResources;
import io.weft.crosshost.TransferOptions;
import io.weft.crosshost.TransferStatistics;
import io.weft.crosshost.gpu.TransferGpu;
import io.weft.crosshost.wire.CommunicatorWire;
import io.weft.device.Deadline;
import io.weft.memory.SharedArena;
import io.weft.peer.PeerAddress;
import io.weft.peer.PeerDirectory;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The transfers of one executor, and who tells them which executors are gone. Thread-safe. Owns its
 * thread, which begins with the first meeting.
 */
public final class ExecutorTransfers implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorTransfers.class);
  private static final long ASK_EVERY_MILLIS = 1000;

  private static volatile ExecutorTransfers running;

  private final ExecutorDirectory directory;
  private final TransferDriver driver;
  private final CrossHostTransfers transfers;
  private final Optional<TransferGpu> gpu;
  private final Optional<GpuResources> gpuResources;
  private final ScheduledExecutorService departures =
      Executors.newSingleThreadScheduledExecutor(ExecutorTransfers::thread);
  private final List<Runnable> closeFirst = new CopyOnWriteArrayList<>();
  private final AtomicBoolean asking = new AtomicBoolean();

  /** For the thread that asks. */
  private int known;

  /**
   * Who this executor is and what its transfers use.
   *
   * @param own what it announced
   * @param peers finds the others
   * @param communicators makes the communicators of cliques
   * @param arena for receive buffers
   * @param gpu of this executor, if it has one; closed with the transfers
   */
  public record Resources(
      PeerAddress own,
      PeerDirectory peers,
      CommunicatorFactory communicators,
      SharedArena arena,
      Optional<TransferGpu> gpu) {}

  /** Transfers that have not met anybody yet. */
  public ExecutorTransfers(Resources resources, TransferDriver driver, TransferOptions options) {
    this.directory = new ExecutorDirectory(resources.own(), resources.peers());
    this.driver = driver;
    this.gpu = resources.gpu();
    this.gpuResources = gpu.map(each -> each.resources(resources.communicators()));
    this.transfers =
        new CrossHostTransfers(
            directory,
            new CrossHostTransfers.Resources(
                resources.communicators(),
                (key, rank) -> {
                  beginToAsk();
                  return CliqueBootstrap.join(
                      driver, key, rank, Deadline.after(options.deadline()));
                },
                CommunicatorWire::new,
                resources.arena(),
                gpuResources),
            options);
  }

  private static Thread thread(Runnable task) {
    Thread thread = new Thread(task, "weft-transfer-departures");
    thread.setDaemon(true);
    return thread;
  }

  /** The transfers of the executor in this JVM, if Weft runs. */
  public static Optional<ExecutorTransfers> running() {
    return Optional.ofNullable(running);
  }

  /** From now on tasks of this JVM find these transfers, until they are closed. */
  public void start() {
    running = this;
  }

  CrossHostTransfers transfers() {
    return transfers;
  }

  /**
   * What the transfers use of this executor's GPU, for others that move what lies there; until the
   * transfers are closed.
   */
  public Optional<GpuResources> gpuResources() {
    return gpuResources;
  }

  /** Has something run before the transfers and their GPU are closed. */
  public void beforeClose(Runnable action) {
    closeFirst.add(action);
  }

  private void beginToAsk() {
    if (asking.compareAndSet(false, true)) {
      ScheduledFuture<?> unused =
          departures.scheduleWithFixedDelay(
              this::ask, ASK_EVERY_MILLIS, ASK_EVERY_MILLIS, TimeUnit.MILLISECONDS);
    }
  }

  private void ask() {
    List<Departure> news;
    try {
      news = driver.departures(known);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return;
    } catch (Exception e) {
      LOG.debug("The driver does not say which executors are gone; it is asked again", e);
      return;
    }
    known += news.size();
    news.forEach(this::departed);
  }

  private void departed(Departure departure) {
    String incarnation = directory.known(departure.executorId());
    if (incarnation != null) {
      LOG.info("Executor {} is gone: {}", departure.executorId(), departure.reason());
      transfers.fail(departure.executorId(), incarnation, departure.reason());
    }
  }

  /** What the transfers have done. */
  public TransferStatistics statistics() {
    return transfers.statistics();
  }

  /** Fails what is under way; later requests are refused. */
  @Override
  public void close() {
    if (running == this) {
      running = null;
    }
    closeFirst.forEach(Runnable::run);
    departures.shutdownNow();
    transfers.close();
    gpu.ifPresent(TransferGpu::close);
  }
}
