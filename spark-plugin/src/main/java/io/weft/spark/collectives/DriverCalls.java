package io.weft.spark.collectives;

import io.weft.spark.rendezvous.RendezvousAnswer;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.rendezvous.RendezvousDriver;
import io.weft.spark.rendezvous.StageAttempt;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * What one task asks of the driver, on a thread of its own: Spark waits for an answer as long as
 * its own timeout says, and the communicator's may be shorter.
 *
 * <p>One question at a time. For one thread, which closes it; that ends the question under way.
 */
final class DriverCalls implements AutoCloseable {
  private static final long TELL_SECONDS = 1;

  private final RendezvousDriver<StageAttempt> driver;
  private final ExecutorService thread;
  private Future<RendezvousAnswer> asked;

  /**
   * Nothing is asked yet.
   *
   * @param taskId Spark's number of the task, for the name of the thread
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
   * Asks, unless the question before is still open, and waits for the answer.
   *
   * @param nanos the longest wait
   * @return empty when there is no answer yet; the next call waits on
   * @throws Exception what the asking failed of; asking again may help
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
   * Gives up the question that is open and tells this instead; waits a second for it to arrive.
   *
   * @throws Exception when it may not have arrived
   */
  void tell(RendezvousCall<StageAttempt> call) throws Exception {
    if (asked != null) {
      asked.cancel(true);
      asked = null;
    }
    if (ask(call, TimeUnit.SECONDS.toNanos(TELL_SECONDS)).isEmpty()) {
      throw new TimeoutException("no answer within " + TELL_SECONDS + " s");
    }
  }

  @Override
  public void close() {
    thread.shutdownNow();
  }
}
