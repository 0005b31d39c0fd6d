package io.weft.spark.collectives;

import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.LogPrefix;
import io.weft.collectives.fault.CollectiveException;
import io.weft.device.Deadline;
import io.weft.spark.rendezvous.RendezvousDriver;
import io.weft.spark.rendezvous.StageAttempt;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.spark.BarrierTaskContext;
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
  private final CommunicatorFactory factory;
  private final RendezvousDriver<StageAttempt> driver;
  private final CollectiveTotals totals = new CollectiveTotals();
  private final KillWatch watch = new KillWatch(this::checkKilled);
  private final ConcurrentMap<Long, TaskCommunicator> tasks = new ConcurrentHashMap<>();
  private volatile boolean closed;

  /**
   * Creates the collectives of an executor.
   *
   * @param factory creates the communicators
   * @param driver sends calls to the rendezvous on the driver
   */
  public ExecutorCollectives(
      Options options, CommunicatorFactory factory, RendezvousDriver<StageAttempt> driver) {
    this.options = options;
    this.factory = factory;
    this.driver = driver;
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

  Communicator communicator(BarrierTaskContext context, Duration timeout) {
    BarrierTask task = new BarrierTask(context, options.executorId(), options.host());
    TaskCommunicator made = new TaskCommunicator(task, this);
    TaskCommunicator known = tasks.putIfAbsent(context.taskAttemptId(), made);
    if (known == null) {
      made.listen();
    }
    return (known == null ? made : known).get(timeout);
  }

  /** Creates a communicator with the other tasks of the stage. Reports a failure to them. */
  Communicator create(BarrierTask task, Duration timeout) {
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
      return create(task, calls, common, names, start);
    }
  }

  private Communicator create(
      BarrierTask task,
      DriverCalls calls,
      CommunicatorOptions common,
      TaskNames names,
      long start) {
    try (DriverBootstrap bootstrap =
        DriverBootstrap.join(calls, task, names, Deadline.after(common.timeout()))) {
      Communicator communicator = factory.create(bootstrap, common);
      LOG.info(
          "{}opened by {} in {}; hosts {}",
          common.prefix().of(task.rank(), task.nranks(), bootstrap.id()),
          task.name(),
          Deadline.describe(System.nanoTime() - start),
          communicator.topology().hosts());
      return communicator;
    } catch (CollectiveException e) {
      reportToDriver(task, calls, e);
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
    if (tasks.remove(task.context().taskAttemptId(), ended)) {
      ended.current().ifPresent(totals::closed);
    }
  }

  /** The counters of all communicators of this executor. */
  public CollectiveStatistics statistics() {
    return totals.statistics();
  }

  /** Closes the open communicators and refuses later requests. */
  @Override
  public void close() {
    closed = true;
    if (running == this) {
      running = null;
    }
    List.copyOf(tasks.values()).forEach(TaskCommunicator::close);
    watch.close();
  }
}
