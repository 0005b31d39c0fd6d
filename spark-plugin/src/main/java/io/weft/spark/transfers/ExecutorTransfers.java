package io.weft.spark.transfers;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.UniqueId;
import io.weft.collectives.clique.CliqueKey;
import io.weft.device.Deadline;
import io.weft.memory.SharedArena;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.PeerDirectory;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLossMonitor;
import io.weft.spark.rendezvous.ExecutorLosses.ExecutorLoss;
import io.weft.spark.rendezvous.RendezvousAnswer;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.transfers.DeviceTransfers;
import io.weft.transfers.DeviceTransfers.GpuResources;
import io.weft.transfers.TransferAttempt;
import io.weft.transfers.TransferOptions;
import io.weft.transfers.TransferStatistics;
import io.weft.transfers.TransferWire.CommunicatorWire;
import io.weft.transfers.gpu.TransferGpu;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
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
  public record OwnResources(
      PeerAddress own,
      PeerDirectory peers,
      CommunicatorFactory communicators,
      SharedArena arena,
      Optional<TransferGpu> gpu) {}

  /** Creates transfers without communicators. */
  public ExecutorTransfers(OwnResources resources, TransferDriver driver, TransferOptions options) {
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

  /**
   * One end of a clique's rendezvous on the driver. It polls the driver, often at first, then less
   * often. Used by one thread at a time.
   */
  static final class CliqueBootstrap implements Bootstrap {
    private static final Logger LOG = LoggerFactory.getLogger(CliqueBootstrap.class);
    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long LAST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final TransferDriver driver;
    private final String ticket = UUID.randomUUID().toString();
    private final CliquePair clique;
    private final int rank;
    private UniqueId id;

    private CliqueBootstrap(TransferDriver driver, CliquePair clique, int rank) {
      this.driver = driver;
      this.clique = clique;
      this.rank = rank;
    }

    /**
     * Joins the rendezvous. Does not wait for the other end.
     *
     * @throws IOException if the driver does not answer before the deadline
     */
    static CliqueBootstrap join(TransferDriver driver, CliqueKey key, int rank, Deadline deadline)
        throws IOException {
      CliquePair clique =
          new CliquePair(
              key.members().stream()
                  .map(
                      member ->
                          new CliquePair.End(
                              member.process(), member.incarnation(), member.device().toString()))
                  .toList());
      CliqueBootstrap bootstrap = new CliqueBootstrap(driver, clique, rank);
      bootstrap.join(deadline);
      return bootstrap;
    }

    private void join(Deadline deadline) throws IOException {
      Exception last = null;
      long pause = FIRST_PAUSE_NANOS;
      do {
        try {
          id = UniqueId.decode(driver.ask(call(RendezvousCall.JOIN, null)).id());
          return;
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new IOException("interrupted", e);
        } catch (Exception e) {
          last = e;
        }
        LockSupport.parkNanos(this, Math.min(pause, deadline.remainingNanos()));
        pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
      } while (!deadline.expired());
      throw new IOException("the driver gave no answer within " + deadline + ": " + last, last);
    }

    private RendezvousCall<CliquePair> call(String round, byte[] message) {
      return new RendezvousCall<>(
          clique, ticket, rank, nranks(), end(rank).toString(), round, message, null);
    }

    @Override
    public UniqueId id() {
      return id;
    }

    @Override
    public int rank() {
      return rank;
    }

    @Override
    public int nranks() {
      return clique.ends().size();
    }

    private CliquePair.End end(int member) {
      return clique.ends().get(member);
    }

    @Override
    public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
      RendezvousCall<CliquePair> call = call(round, mine);
      RendezvousAnswer last = null;
      Exception unanswered = null;
      long pause = FIRST_PAUSE_NANOS;
      while (true) {
        try {
          last = driver.ask(last == null ? call : call.withoutMessage());
          unanswered = null;
          // A complete round was complete before the failure.
          if (last.messages() != null) {
            return last.messages();
          }
          if (last.failure() != null) {
            throw new CollectiveException(Kind.ABORTED, List.of(1 - rank), last.failure());
          }
        } catch (CollectiveException e) {
          throw e;
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        } catch (Exception e) {
          unanswered = e;
        }
        requireTime(round, unanswered, deadline);
        LockSupport.parkNanos(this, Math.min(pause, deadline.remainingNanos()));
        pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
      }
    }

    private void requireTime(String round, Exception unanswered, Deadline deadline) {
      if (!deadline.expired() && !Thread.currentThread().isInterrupted()) {
        return;
      }
      String end = deadline.expired() ? "within " + deadline : "before the interrupt";
      throw new CollectiveException(
          deadline.expired() ? Kind.TIMEOUT : Kind.ABORTED,
          List.of(1 - rank),
          unanswered == null
              ? "%s did not come to the rendezvous with %s (round %s) %s"
                  .formatted(end(1 - rank), end(rank), round, end)
              : "the driver gave %s no answer about %s (round %s) %s: %s"
                  .formatted(end(rank), end(1 - rank), round, end, unanswered),
          unanswered);
    }

    @Override
    public void close() {
      try {
        RendezvousAnswer unused = driver.ask(call(RendezvousCall.LEAVE, null));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } catch (Exception e) {
        LOG.debug("The driver did not learn that {} left its rendezvous", end(rank), e);
      }
    }
  }
}
