package io.weft.transfers;

import io.weft.collectives.clique.CliqueKey;
import io.weft.transfers.TransferCounter.BatchReason;
import io.weft.transfers.TransferCounter.TransferCounters;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Collects the transfers of one device into batches and launches each batch: hands it to its
 * cliques. The thread "weft-transfer-launch-…" never waits for a source or a peer; each clique does
 * that on its own lane. Transfers are launched in the order of their calls.
 *
 * <p>Thread-safe. Owns its thread.
 */
final class TransferLauncher implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TransferLauncher.class);

  private static final long CLOSE_TIMEOUT_SECONDS = 5;

  private final TransferOptions options;
  private final TransferCliques cliques;
  private final TransferCounters counters;
  private final ScheduledThreadPoolExecutor thread;
  private TransferBatch open = new TransferBatch();
  private boolean closed;

  TransferLauncher(
      DeviceId device,
      TransferOptions options,
      TransferCliques cliques,
      TransferCounters counters) {
    this.options = options;
    this.cliques = cliques;
    this.counters = counters;
    String name = "weft-transfer-launch-" + device.executor() + "-" + device.ordinal();
    this.thread =
        new ScheduledThreadPoolExecutor(
            1,
            task -> {
              Thread made = new Thread(task, name);
              made.setDaemon(true);
              return made;
            });
    thread.setRemoveOnCancelPolicy(true);
    thread.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
  }

  /** Launches transfers at once, behind the deferred ones. */
  synchronized void launch(List<PreparedTransfer> transfers) {
    requireOpen();
    transfers.forEach(open::add);
    launch(open, BatchReason.CALL);
  }

  /**
   * Adds a deferred transfer to the open batch.
   *
   * @return launches the batch now; for a thread that waits for the transfer
   */
  synchronized Runnable defer(PreparedTransfer transfer) {
    requireOpen();
    TransferBatch batch = open;
    boolean first = batch.isEmpty();
    batch.add(transfer);
    if (batch.bytes() >= options.batchBytes()) {
      launch(batch, BatchReason.BYTES);
    } else if (first) {
      ScheduledFuture<?> unused =
          thread.schedule(
              () -> launch(batch, BatchReason.AGE),
              options.batchAge().toNanos(),
              TimeUnit.NANOSECONDS);
    }
    return () -> launch(batch, BatchReason.NEED);
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the transfers of this executor were closed");
    }
  }

  private synchronized void launch(TransferBatch batch, BatchReason reason) {
    if (closed || batch.isEmpty() || !batch.markLaunched()) {
      return;
    }
    open = new TransferBatch();
    counters.increment(TransferCounter.of(reason));
    try {
      thread.execute(() -> run(batch));
    } catch (RuntimeException | Error e) {
      fail(batch.transfers(), e);
      throw e;
    }
  }

  /** Schedules the deadline first, so that every transfer ends also if a clique throws. */
  private void run(TransferBatch batch) {
    try {
      batch.cancelWhenDone(
          thread.schedule(() -> expire(batch), options.deadline().toNanos(), TimeUnit.NANOSECONDS));
    } catch (RejectedExecutionException e) {
      LOG.debug("A batch was launched after the launcher was closed; its cliques end it", e);
    }
    batch.byClique().forEach(this::add);
  }

  private void add(CliqueKey clique, List<PreparedTransfer> transfers) {
    try {
      cliques.add(clique, transfers);
    } catch (Throwable e) {
      LOG.error("The launch of {} transfers of {} failed", transfers.size(), clique, e);
      fail(transfers, e);
      if (e instanceof VirtualMachineError) {
        // The scheduler would hide it from the process, which may have to end.
        Thread own = Thread.currentThread();
        own.getUncaughtExceptionHandler().uncaughtException(own, e);
      }
    }
  }

  /** Fails transfers that a lane may have. */
  private static void fail(List<PreparedTransfer> transfers, Throwable cause) {
    transfers.forEach(transfer -> transfer.failBecause(cause));
  }

  private void expire(TransferBatch batch) {
    for (PreparedTransfer transfer : batch.transfers()) {
      transfer.expiry(options.deadline()).ifPresent(cause -> expire(transfer, cause));
    }
  }

  /** Aborts the communicator first, so that a retry after the failure gets a new one. */
  private void expire(PreparedTransfer transfer, TransferException cause) {
    try {
      if (transfer.isShared()) {
        cliques.abort(transfer.clique(), cause.getMessage());
      } else if (transfer.isReady()) {
        cliques.abortWait(transfer.clique(), cause.getMessage());
      }
    } catch (RuntimeException e) {
      LOG.warn("The communicator of {} was not aborted", transfer.clique(), e);
    } finally {
      transfer.fail(cause);
    }
  }

  /** Refuses new transfers and fails those that were not launched. */
  @Override
  public void close() {
    TransferBatch last;
    synchronized (this) {
      if (closed) {
        return;
      }
      closed = true;
      last = open;
      open = new TransferBatch();
    }
    last.transfers().forEach(PreparedTransfer::close);
    try {
      // Launched batches still reach their cliques, which end them. Expiry tasks are dropped.
      Object unused = thread.submit(() -> {}).get(CLOSE_TIMEOUT_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException | RejectedExecutionException e) {
      LOG.warn("A launcher of transfers does not end in time", e);
    }
    List<Runnable> dropped = thread.shutdownNow();
    LOG.debug("Dropped {} expiry tasks of transfers", dropped.size());
  }

  /**
   * Transfers of one device that are launched together. Filled by one thread at a time under the
   * launcher's lock, and not changed after the launch.
   */
  static final class TransferBatch {
    private final List<PreparedTransfer> transfers = new ArrayList<>();
    private long bytes;
    private boolean launched;

    void add(PreparedTransfer transfer) {
      transfers.add(transfer);
      bytes += transfer.buffer().bytes();
    }

    long bytes() {
      return bytes;
    }

    boolean isEmpty() {
      return transfers.isEmpty();
    }

    /** Marks the batch as launched. Returns true for the first call. */
    boolean markLaunched() {
      boolean first = !launched;
      launched = true;
      return first;
    }

    List<PreparedTransfer> transfers() {
      return transfers;
    }

    /** The transfers of each clique, the cliques in the order of first appearance. */
    Map<CliqueKey, List<PreparedTransfer>> byClique() {
      Map<CliqueKey, List<PreparedTransfer>> groups = new LinkedHashMap<>();
      for (PreparedTransfer transfer : transfers) {
        groups.computeIfAbsent(transfer.clique(), clique -> new ArrayList<>()).add(transfer);
      }
      return groups;
    }

    /** Cancels a task once every transfer has ended. */
    void cancelWhenDone(Future<?> task) {
      AtomicInteger open = new AtomicInteger(transfers.size());
      for (PreparedTransfer transfer : transfers) {
        transfer
            .event()
            .whenDone(
                failure -> {
                  if (open.decrementAndGet() == 0) {
                    task.cancel(false);
                  }
                });
      }
    }
  }
}
