package io.weft.spark.collectives;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveMetrics;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.CommunicatorOptions.LogPrefix;
import io.weft.collectives.GpuBufferCounters;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.symmetric.CollectiveMemoryCache;
import io.weft.collectives.symmetric.CollectiveMemoryCache.CacheStatistics;
import io.weft.device.Deadline;
import io.weft.spark.rendezvous.RendezvousService.RendezvousDriver;
import io.weft.spark.rendezvous.StageRendezvous.StageAttempt;
import io.weft.transfers.gpu.GpuRanks;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The communicators of the tasks of one executor. Thread-safe. */
public final class ExecutorCollectives implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExecutorCollectives.class);

  /**
   * The executor and its default timeout.
   *
   * @param executorId Spark's executor id
   * @param host name that the other executors use
   * @param timeout of communicators without their own timeout
   */
  public record Options(String executorId, String host, Duration timeout) {}

  private static volatile ExecutorCollectives running;

  private final Options options;
  private final CommunicatorFactory hosts;
  private final GpuRanks gpus;
  private final RendezvousDriver<StageAttempt> driver;
  private final CollectiveMemoryCache memory;
  private final CollectiveTotals totals = new CollectiveTotals();
  private final KillWatch watch = new KillWatch(this::checkKilled);
  private final ConcurrentMap<TaskKey, TaskCommunicator> tasks = new ConcurrentHashMap<>();
  private volatile boolean closed;

  /**
   * Creates the collectives of an executor.
   *
   * @param hosts creates the communicators of hosts
   * @param gpus creates those of GPUs; closed with these collectives
   * @param driver sends calls to the rendezvous on the driver
   * @param memory of the communicators, between stages; closed with these collectives
   */
  public ExecutorCollectives(
      Options options,
      CommunicatorFactory hosts,
      GpuRanks gpus,
      RendezvousDriver<StageAttempt> driver,
      CollectiveMemoryCache memory) {
    this.options = options;
    this.hosts = hosts;
    this.gpus = gpus;
    this.driver = driver;
    this.memory = memory;
  }

  /** The collectives of this JVM's executor; empty if Weft does not run. */
  public static Optional<ExecutorCollectives> running() {
    return Optional.ofNullable(running);
  }

  /** Makes these the collectives of this JVM, until they are closed. */
  public void start() {
    running = this;
  }

  Duration timeout() {
    return options.timeout();
  }

  /** The kinds of communicators, of which a task may have one each. */
  private enum Ranks {
    HOSTS("hosts", ""),
    GPUS("GPUs on hosts", "gpu/");

    private final String text;

    /** The rounds of a task's communicators are different sequences at the rendezvous. */
    private final String prefix;

    Ranks(String text, String prefix) {
      this.text = text;
      this.prefix = prefix;
    }
  }

  private record TaskKey(long task, Ranks ranks) {}

  Communicator communicator(BarrierTaskContext context, Duration timeout) {
    return communicator(context, Ranks.HOSTS, timeout);
  }

  GpuCommunicator onGpu(BarrierTaskContext context, Duration timeout) {
    return (GpuCommunicator) communicator(context, Ranks.GPUS, timeout);
  }

  private Communicator communicator(BarrierTaskContext context, Ranks ranks, Duration timeout) {
    BarrierTask task = new BarrierTask(context, options.executorId(), options.host());
    TaskCommunicator made = new TaskCommunicator(task, ranks, this);
    TaskCommunicator known = tasks.putIfAbsent(made.key(), made);
    if (known == null) {
      made.listen();
    }
    return (known == null ? made : known).get(timeout);
  }

  /** Creates a communicator with the other tasks of the stage. Reports a failure to them. */
  private Communicator create(BarrierTask task, Ranks ranks, Duration timeout) {
    if (closed) {
      throw new IllegalStateException("Weft is stopping on executor " + options.executorId());
    }
    long start = System.nanoTime();
    TaskNames names = new TaskNames();
    CommunicatorOptions common =
        CommunicatorOptions.DEFAULT
            .withTimeout(timeout)
            .withPrefix(
                new LogPrefix(options.executorId(), "", task.key().stage(), task.key().attempt()))
            .withNames(names);
    try (DriverCalls calls = new DriverCalls(driver, task.context().taskAttemptId())) {
      return create(task, ranks, calls, common, names, start);
    }
  }

  private Communicator create(
      BarrierTask task,
      Ranks ranks,
      DriverCalls calls,
      CommunicatorOptions common,
      TaskNames names,
      long start) {
    try (StageBootstrap bootstrap =
        StageBootstrap.join(calls, task, names, ranks.prefix, Deadline.after(common.timeout()))) {
      CommunicatorFactory factory = ranks == Ranks.HOSTS ? hosts : gpus;
      Communicator communicator = factory.create(bootstrap, common);
      LOG.info(
          "{}opened by {} in {}; {} {}",
          common.prefix().of(task.rank(), task.nranks(), bootstrap.id()),
          task.name(),
          Deadline.describe(System.nanoTime() - start),
          ranks.text,
          communicator.topology().hosts());
      return communicator;
    } catch (CollectiveException e) {
      if (ranks == Ranks.HOSTS || e.kind() != CollectiveException.Kind.INVALID) {
        reportToDriver(task, calls, e);
      } // Else all ranks know that there are no GPUs for them, and may go on without.
      throw names.explain(e);
    } catch (RuntimeException e) {
      reportToDriver(task, calls, e);
      throw e;
    }
  }

  /** Reports the failure, so that the other tasks do not wait until their deadline. */
  private static void reportToDriver(BarrierTask task, DriverCalls calls, RuntimeException cause) {
    try {
      calls.report(task.call("failed", null, "got no communicator: " + cause.getMessage()));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Exception e) {
      LOG.debug(
          "The failure of {} did not reach the driver, which learns of it from Spark",
          task.name(),
          e);
    }
  }

  void opened(Communicator communicator) {
    totals.opened(communicator);
    watch.start();
  }

  private boolean checkKilled() {
    tasks.values().forEach(TaskCommunicator::checkKilled);
    return !tasks.isEmpty();
  }

  void ended(BarrierTask task, TaskCommunicator ended) {
    if (tasks.remove(ended.key(), ended)) {
      ended.current().ifPresent(totals::closed);
    }
    closeIdleGpu();
  }

  /** Communicators of tasks that still run need the GPU. */
  private void closeIdleGpu() {
    if (closed && tasks.isEmpty()) {
      gpus.close();
    }
  }

  /** The counters of all communicators of this executor. */
  public CollectiveStatistics statistics() {
    return totals.statistics(memory.statistics(), gpus.statistics());
  }

  /**
   * Aborts the open communicators and refuses later requests. A task that still runs may use its
   * symmetric memory and its GPU, so these are freed at the end of the task, or by the end of the
   * process.
   */
  @Override
  public void close() {
    closed = true;
    if (running == this) {
      running = null;
    }
    List.copyOf(tasks.values()).forEach(TaskCommunicator::stop);
    watch.close();
    memory.close();
    closeIdleGpu();
  }

  /**
   * A task's communicator, from its first request to the end of the task. Thread-safe: the task's
   * threads request it, Spark's threads report the end of the task.
   */
  static final class TaskCommunicator implements TaskCompletionListener, TaskFailureListener {
    private static final long KILL_GRACE_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    private static final Logger LOG = LoggerFactory.getLogger(TaskCommunicator.class);

    private final BarrierTask task;
    private final Ranks ranks;
    private final ExecutorCollectives collectives;
    private final Object state = new Object();
    private volatile Communicator communicator;
    private boolean ended;

    private long killedSince;

    TaskCommunicator(BarrierTask task, Ranks ranks, ExecutorCollectives collectives) {
      this.task = task;
      this.ranks = ranks;
      this.collectives = collectives;
    }

    private TaskKey key() {
      return new TaskKey(task.context().taskAttemptId(), ranks);
    }

    /** Registers for the end of the task. */
    void listen() {
      var unused = task.context().addTaskFailureListener(this).addTaskCompletionListener(this);
    }

    /** Waits for the other tasks under a lock that the end of the task does not need. */
    synchronized Communicator get(Duration timeout) {
      if (communicator == null) {
        keep(collectives.create(task, ranks, timeout));
      }
      return communicator;
    }

    private void keep(Communicator created) {
      boolean late;
      synchronized (state) {
        late = ended;
        if (!late) {
          communicator = created;
          collectives.opened(created);
        }
      }
      if (late) {
        created.close();
        throw new IllegalStateException(task.name() + " has ended and gets no communicator");
      }
      if (collectives.closed) {
        stop();
      }
    }

    Optional<Communicator> current() {
      return Optional.ofNullable(communicator);
    }

    /**
     * Aborts the communicator if Spark has killed the task without an interrupt of its thread.
     * Waits a little before: tasks are killed because another one failed, and its reason should
     * come first. Used by one thread.
     */
    void checkKilled() {
      if (communicator == null || communicator.failure().isPresent() || !task.isKilled()) {
        return;
      }
      long now = System.nanoTime();
      if (killedSince == 0) {
        killedSince = now;
      } else if (now - killedSince > KILL_GRACE_NANOS) {
        communicator.abort("its task was killed: " + task.killReason());
      }
    }

    @Override
    public void onTaskFailure(TaskContext context, Throwable cause) {
      if (communicator != null) {
        communicator.abort("its task failed: " + cause);
      }
    }

    @Override
    public void onTaskCompletion(TaskContext context) {
      close();
    }

    /** Aborts the communicator, whose memory the running task may still use. */
    void stop() {
      Communicator open = communicator;
      if (open != null) {
        open.abort("Weft stops on executor " + collectives.options.executorId());
      }
    }

    /** Closes the communicator, and refuses later requests, at the end of the task. */
    private void close() {
      Communicator open;
      synchronized (state) {
        ended = true;
        open = communicator;
      }
      try {
        if (open != null) {
          open.close();
        }
      } catch (RuntimeException e) {
        LOG.warn("The communicator of {} was not closed completely", task.name(), e);
      } finally {
        collectives.ended(task, this);
      }
    }
  }

  /** Sums the counters of an executor's communicators, also of closed ones. Thread-safe. */
  static final class CollectiveTotals {
    private final Set<Communicator> open = Collections.newSetFromMap(new IdentityHashMap<>());
    private Map<CollectiveStatistics.Key, CollectiveMetrics.Line> closed = new HashMap<>();
    private long opened;

    synchronized void opened(Communicator communicator) {
      open.add(communicator);
      opened++;
    }

    /** Adds the counters of a communicator whose operations have ended. */
    synchronized void closed(Communicator communicator) {
      if (open.remove(communicator)) {
        closed = CollectiveStatistics.sum(closed, communicator.metrics().lines());
      }
    }

    synchronized CollectiveStatistics statistics(CacheStatistics memory, GpuBufferCounters gpus) {
      Map<CollectiveStatistics.Key, CollectiveMetrics.Line> sum = closed;
      for (Communicator communicator : open) {
        sum = CollectiveStatistics.sum(sum, communicator.metrics().lines());
      }
      List<CollectiveMetrics.Line> lines = new ArrayList<>(sum.values());
      return new CollectiveStatistics(opened, open.size(), lines, memory, gpus);
    }
  }

  /**
   * Checks periodically for killed tasks, while there are tasks. Spark marks a task of a failed
   * barrier stage as killed without an interrupt of its thread. The checking thread ends shortly
   * after the last task. Thread-safe.
   */
  static final class KillWatch implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(KillWatch.class);
    private static final long PERIOD_MILLIS = 100;

    private final BooleanSupplier check;
    private final ScheduledThreadPoolExecutor thread;
    private boolean scheduled;

    /**
     * Creates a watch that does not run yet.
     *
     * @param check runs one check; returns false if there are no tasks to check
     */
    KillWatch(BooleanSupplier check) {
      this.check = check;
      this.thread = new ScheduledThreadPoolExecutor(1, KillWatch::newThread);
      thread.setKeepAliveTime(1, TimeUnit.SECONDS);
      thread.allowCoreThreadTimeOut(true);
    }

    private static Thread newThread(Runnable task) {
      Thread thread = new Thread(task, "weft-collectives-watch");
      thread.setDaemon(true);
      return thread;
    }

    /** Starts the checks, which go on while there are tasks. */
    synchronized void start() {
      if (!scheduled) {
        scheduled = true;
        schedule();
      }
    }

    private void schedule() {
      try {
        var unused = thread.schedule(this::checkOnce, PERIOD_MILLIS, TimeUnit.MILLISECONDS);
      } catch (RejectedExecutionException e) {
        LOG.debug("The watch is closed", e);
      }
    }

    private synchronized void checkOnce() {
      boolean more = true;
      try {
        more = check.getAsBoolean();
      } catch (RuntimeException e) {
        LOG.warn("A check for killed tasks failed; the next one may succeed", e);
      }
      scheduled = more;
      if (more) {
        schedule();
      }
    }

    @Override
    public void close() {
      thread.shutdownNow();
    }
  }
}
