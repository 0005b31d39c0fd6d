package io.weft.spark.transfers;

import io.weft.collectives.CommunicatorFactory;
import io.weft.device.Deadline;
import io.weft.memory.SharedArena;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerDirectory;
import io.weft.spark.rendezvous.ExecutorLossMonitor;
import io.weft.spark.rendezvous.ExecutorLosses.ExecutorLoss;
import io.weft.transfers.DeviceTransfers;
import io.weft.transfers.DeviceTransfers.GpuResources;
import io.weft.transfers.TransferAttempt;
import io.weft.transfers.TransferOptions;
import io.weft.transfers.TransferStatistics;
import io.weft.transfers.TransferWire.CommunicatorWire;
import io.weft.transfers.gpu.TransferGpu;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The transfers of one executor, and the monitor of lost executors. Thread-safe. Owns its threads,
 * which start with the first rendezvous.
 */
public final class ExecutorTransfers implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorTransfers.class);
  private static final long ASK_EVERY_MILLIS = 1000;

  private static volatile ExecutorTransfers running;

  private final ExecutorDirectory directory;
  private final DeviceTransfers transfers;
  private final Optional<TransferGpu> gpu;
  private final Optional<GpuResources> gpuResources;
  private final ExecutorLossMonitor losses;
  private final List<Runnable> closeFirst = new CopyOnWriteArrayList<>();

  /** The transfers of each running task that has any, by the id of its attempt. */
  private final Map<Long, DeviceTransfers> ofTasks = new ConcurrentHashMap<>();

  /**
   * The address of this executor and the resources of its transfers.
   *
   * @param own address that this executor has announced
   * @param peers finds the other executors
   * @param communicators creates the communicators of cliques
   * @param arena for receive buffers
   * @param gpu of this executor, if it has one; is closed with the transfers
   */
  public record Resources(
      PeerAddress own,
      PeerDirectory peers,
      CommunicatorFactory communicators,
      SharedArena arena,
      Optional<TransferGpu> gpu) {}

  /** Creates transfers without communicators. */
  public ExecutorTransfers(Resources resources, TransferDriver driver, TransferOptions options) {
    this.directory = new ExecutorDirectory(resources.own(), resources.peers());
    this.losses = new ExecutorLossMonitor(driver, ASK_EVERY_MILLIS, this::lost);
    this.gpu = resources.gpu();
    this.gpuResources = gpu.map(each -> each.resources(resources.communicators()));
    this.transfers =
        new DeviceTransfers(
            directory,
            new DeviceTransfers.Resources(
                resources.communicators(),
                (key, rank) -> {
                  losses.begin();
                  return CliqueBootstrap.join(
                      driver, key, rank, Deadline.after(options.deadline()));
                },
                CommunicatorWire::new,
                resources.arena(),
                gpuResources),
            options);
  }

  /** The transfers of this JVM's executor; empty if Weft does not run. */
  public static Optional<ExecutorTransfers> running() {
    return Optional.ofNullable(running);
  }

  /** Makes these the transfers of this JVM, until they are closed. */
  public void start() {
    running = this;
  }

  DeviceTransfers transfers() {
    return transfers;
  }

  /**
   * The transfers of a task. Those that have not ended when the task fails or is killed are
   * withdrawn, so that the next attempt does not meet them.
   */
  DeviceTransfers transfers(TaskContext task) {
    long id = task.taskAttemptId();
    DeviceTransfers known = ofTasks.get(id);
    if (known != null) {
      return known;
    }
    DeviceTransfers made =
        transfers.ofAttempt(new TransferAttempt(task.stageId(), task.stageAttemptNumber()));
    DeviceTransfers first = ofTasks.putIfAbsent(id, made);
    if (first != null) {
      return first;
    }
    // A listener that comes too late runs at once.
    task.addTaskFailureListener(
        (TaskFailureListener)
            (ended, failure) -> made.withdraw("task " + id + " failed: " + failure));
    task.addTaskCompletionListener((TaskCompletionListener) ended -> ofTasks.remove(id));
    return made;
  }

  /**
   * The transfers' resources of this executor's GPU, for other components that move GPU memory.
   * Valid until the transfers are closed.
   */
  public Optional<GpuResources> gpuResources() {
    return gpuResources;
  }

  /** Adds an action that runs before the transfers and their GPU are closed. */
  public void beforeClose(Runnable action) {
    closeFirst.add(action);
  }

  private void lost(ExecutorLoss loss) {
    String incarnation = directory.forget(loss.executorId());
    if (incarnation != null) {
      LOG.info("Executor {} was lost: {}", loss.executorId(), loss.reason());
      transfers.fail(loss.executorId(), incarnation, loss.reason());
    }
  }

  /** The counters of the transfers. */
  public TransferStatistics statistics() {
    return transfers.statistics();
  }

  /** Fails transfers under way and refuses later ones. */
  @Override
  public void close() {
    if (running == this) {
      running = null;
    }
    closeFirst.forEach(Runnable::run);
    losses.close();
    transfers.close();
    gpu.ifPresent(TransferGpu::close);
  }
}
