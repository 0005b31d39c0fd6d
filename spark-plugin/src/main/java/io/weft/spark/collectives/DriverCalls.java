package io.weft.spark.collectives;

import io.weft.spark.rendezvous.RendezvousAnswer;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.rendezvous.RendezvousService.RendezvousDriver;
import io.weft.spark.rendezvous.StageRendezvous.StageAttempt;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The calls of one task to the driver, on their own thread. Spark's call blocks until Spark's
 * timeout, and the communicator's timeout may be shorter.
 *
 * <p>One call at a time. Used by one thread, which closes it. Closing ends the call under way.
 */
final class DriverCalls implements AutoCloseable {
  private static final long NOTIFY_SECONDS = 1;

  private final RendezvousDriver<StageAttempt> driver;
  private final ExecutorService thread;
  private Future<RendezvousAnswer> asked;

  /**
   * Creates the thread; makes no call yet.
   *
   * @param taskId Spark's task id, for the name of the thread
   */
  DriverCalls(RendezvousDriver<StageAttempt> driver, long taskId) {
    this.driver = driver;
    this.thread =
        Executors.newSingleThreadExecutor(
            work -> {
              Thread asking = new Thread(work, "weft-collectives-rendezvous-" + taskId);
              asking.setDaemon(true);
              return asking;
            });
  }

  /**
   * Sends a call, unless an earlier one is still open, and waits for the answer.
   *
   * @param nanos the longest wait
   * @return empty if no answer has come; the next invocation waits on
   * @throws Exception if the call failed; a retry may succeed
   */
  Optional<RendezvousAnswer> ask(RendezvousCall<StageAttempt> call, long nanos) throws Exception {
    if (asked == null) {
      asked = thread.submit(() -> driver.ask(call));
    }
    try {
      RendezvousAnswer answer = asked.get(nanos, TimeUnit.NANOSECONDS);
      asked = null;
      return Optional.of(answer);
    } catch (TimeoutException e) {
      return Optional.empty();
    } catch (ExecutionException e) {
      asked = null;
      throw e.getCause() instanceof Exception cause ? cause : e;
    }
  }

  /**
   * Cancels the open call and sends this one instead. Waits up to a second.
   *
   * @throws Exception if the call may not have arrived
   */
  void report(RendezvousCall<StageAttempt> call) throws Exception {
    if (asked != null) {
      asked.cancel(true);
      asked = null;
    }
    if (ask(call, TimeUnit.SECONDS.toNanos(NOTIFY_SECONDS)).isEmpty()) {
      throw new TimeoutException("no answer within " + NOTIFY_SECONDS + " s");
    }
  }

  @Override
  public void close() {
    thread.shutdownNow();
  }
}
