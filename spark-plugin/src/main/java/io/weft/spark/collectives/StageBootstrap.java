package io.weft.spark.collectives;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import io.weft.spark.rendezvous.RendezvousAnswer;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.rendezvous.StageRendezvous.StageAttempt;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One task's end of its stage's rendezvous on the driver. The task polls the driver, often at
 * first, then less often. Used by one thread at a time.
 */
final class StageBootstrap implements Bootstrap {
  private static final Logger LOG = LoggerFactory.getLogger(StageBootstrap.class);
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** How often to check for a kill while the driver does not answer. */
  private static final long KILL_CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private static final long LAST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long WARN_AFTER_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final String JOIN = "join";

  private final DriverCalls driver;
  private final BarrierTask task;
  private final TaskNames names;
  private final String prefix;
  private UniqueId id;

  private StageBootstrap(DriverCalls driver, BarrierTask task, TaskNames names, String prefix) {
    this.driver = driver;
    this.task = task;
    this.names = names;
    this.prefix = prefix;
  }

  /**
   * Joins the rendezvous and waits for all tasks.
   *
   * @param names gets the names of the other tasks
   * @param prefix of the rounds, another one for each communicator of a task: empty or ending in a
   *     slash
   * @throws CollectiveException naming the tasks that failed or did not come before the deadline
   */
  static StageBootstrap join(
      DriverCalls driver, BarrierTask task, TaskNames names, String prefix, Deadline deadline) {
    StageBootstrap bootstrap = new StageBootstrap(driver, task, names, prefix);
    byte[] proposal = UniqueId.create().encode().getBytes(StandardCharsets.US_ASCII);
    byte[] first = bootstrap.exchange(JOIN, proposal, deadline).get(0);
    bootstrap.id = UniqueId.decode(new String(first, StandardCharsets.US_ASCII));
    return bootstrap;
  }

  @Override
  public UniqueId id() {
    return id;
  }

  @Override
  public int rank() {
    return task.rank();
  }

  @Override
  public int nranks() {
    return task.nranks();
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    return awaitRound(prefix + round, mine, deadline).messages();
  }

  private RendezvousAnswer awaitRound(String round, byte[] mine, Deadline deadline) {
    RendezvousCall<StageAttempt> call = task.call(round, mine, null);
    RendezvousAnswer last = null;
    Exception unanswered = null;
    long pause = FIRST_PAUSE_NANOS;
    boolean warned = false;
    while (true) {
      boolean open = false;
      try {
        Optional<RendezvousAnswer> answer =
            driver.ask(
                last == null ? call : call.withoutMessage(),
                Math.min(KILL_CHECK_NANOS, deadline.remainingNanos()));
        open = answer.isEmpty();
        if (answer.isPresent()) {
          last = answer.get();
          unanswered = null;
          names.learn(last.names());
          if (isComplete(last)) {
            return last;
          }
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } catch (CollectiveException e) {
        throw e;
      } catch (Exception e) {
        unanswered = e;
      }
      check(round, last, unanswered, deadline);
      warned = warnOnce(warned, round, last, deadline);
      if (!open) {
        LockSupport.parkNanos(this, Math.min(pause, deadline.remainingNanos()));
        pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
      }
    }
  }

  private static boolean isComplete(RendezvousAnswer answer) {
    if (answer.failure() != null) {
      throw new CollectiveException(Kind.ABORTED, answer.culprits(), answer.failure());
    }
    return answer.messages() != null;
  }

  /** Throws if the task was killed or the deadline has expired. */
  private void check(String round, RendezvousAnswer last, Exception unanswered, Deadline deadline) {
    if (Thread.currentThread().isInterrupted() || task.isKilled()) {
      throw new CollectiveException(
          Kind.ABORTED,
          List.of(task.rank()),
          "rank %d (%s) was killed while it waited in round %s of %s: %s"
              .formatted(task.rank(), task.name(), round, task.key(), task.killReason()));
    }
    if (!deadline.expired()) {
      return;
    }
    if (last == null) {
      throw new CollectiveException(
          Kind.TIMEOUT,
          List.of(),
          "the driver gave %s no answer in round %s of %s within %s%s"
              .formatted(
                  task.name(),
                  round,
                  task.key(),
                  deadline,
                  unanswered == null ? "" : ": " + unanswered),
          unanswered);
    }
    throw names.explain(
        new CollectiveException(
            Kind.TIMEOUT,
            last.missing(),
            "%s did not come to round %s of %s, where rank %d (%s) waited for %s"
                .formatted(
                    CollectiveException.name(last.missing()),
                    round,
                    task.key(),
                    task.rank(),
                    task.name(),
                    deadline)));
  }

  private boolean warnOnce(boolean warned, String round, RendezvousAnswer last, Deadline deadline) {
    if (!warned && last != null && deadline.elapsedNanos() > WARN_AFTER_NANOS) {
      LOG.warn(
          "{} still waits for {} in round {} of {}",
          task.name(),
          CollectiveException.name(last.missing()),
          round,
          task.key());
      return true;
    }
    return warned;
  }

  /** Nothing to free: the driver drops the rendezvous when the stage ends. */
  @Override
  public void close() {
    // The rendezvous ends with its stage.
  }
}
