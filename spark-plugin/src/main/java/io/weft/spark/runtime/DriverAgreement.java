package io.weft.spark.runtime;

import io.weft.shuffle.AdoptionAgreement;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.runtime.Messages.Adopt;
import io.weft.spark.runtime.Messages.Adoption;
import io.weft.spark.runtime.Messages.Adoption.State;
import io.weft.spark.runtime.Messages.AskAdoption;
import io.weft.spark.runtime.Messages.ToDriver;
import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.storage.BlockManagerId;

/**
 * Asks the driver about the map outputs of dead executors. Repeats a message that fails or is not
 * answered, until the timeout of the request. For one thread.
 *
 * <p>Messages are sent by a thread "weft-adopter-messages", because Spark's own timeout for them is
 * longer. It ends after a minute without messages.
 */
final class DriverAgreement implements AdoptionAgreement {
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
  private static final long LAST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

  /** A message is repeated after this part of the timeout. */
  private static final int MESSAGES = 3;

  private final PluginContext driver;
  private final Supplier<BlockManagerId> own;
  private final Duration timeout;
  private final ExecutorService messages = Executors.newCachedThreadPool(DriverAgreement::thread);

  /** The number of the last request. */
  private int number;

  /**
   * Creates the connection.
   *
   * @param own this executor's place in Spark's tracker
   * @param timeout of each request
   */
  DriverAgreement(PluginContext driver, Supplier<BlockManagerId> own, Duration timeout) {
    this.driver = driver;
    this.own = own;
    this.timeout = timeout;
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "weft-adopter-messages");
    thread.setDaemon(true);
    return thread;
  }

  @Override
  public Set<BlockKey> agree(
      Step step, String executorId, String incarnation, Collection<BlockKey> outputs)
      throws IOException, InterruptedException {
    number++;
    BlockManagerId place = own.get();
    Adoption answer =
        answer(
            new Adopt(
                driver.executorID(),
                number,
                step,
                place.host(),
                place.port(),
                place.topologyInfo().getOrElse(() -> null),
                executorId,
                incarnation,
                byShuffle(outputs)));
    if (answer.state() == State.ADOPTER_REMOVED) {
      throw new AdopterRemovedException();
    }
    if (answer.state() != State.DONE) {
      throw new IOException(answer.refusal());
    }
    return keys(answer.outputs());
  }

  private Adoption answer(Adopt request) throws IOException, InterruptedException {
    AskAdoption poll = new AskAdoption(request.adopter(), request.number());
    long deadline = System.nanoTime() + timeout.toNanos();
    long pause = FIRST_PAUSE_NANOS;
    ToDriver next = request;
    IOException failure = null;
    while (true) {
      try {
        Adoption answer = ask(next, deadline);
        if (answer.state() != State.PENDING && answer.state() != State.UNKNOWN) {
          return answer;
        }
        next = answer.state() == State.UNKNOWN ? request : poll;
      } catch (IOException e) {
        failure = e;
        next = poll;
      }
      if (System.nanoTime() - deadline >= 0) {
        throw new IOException(
            "the driver did not answer within %d ms (%s)"
                .formatted(timeout.toMillis(), AdoptionSettings.TIMEOUT),
            failure);
      }
      LockSupport.parkNanos(this, pause);
      if (Thread.interrupted()) {
        throw new InterruptedException();
      }
      pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
    }
  }

  private Adoption ask(ToDriver message, long deadline) throws IOException, InterruptedException {
    long nanos = Math.min(deadline - System.nanoTime(), timeout.toNanos() / MESSAGES);
    Future<Object> answer = messages.submit(() -> MessageCodec.ask(driver, message));
    try {
      return (Adoption) answer.get(nanos, TimeUnit.NANOSECONDS);
    } catch (ExecutionException | TimeoutException | CancellationException e) {
      throw new IOException("the driver gave no answer: " + e, e);
    } catch (RuntimeException e) {
      throw new IOException("the driver's answer cannot be read: " + e, e);
    } finally {
      answer.cancel(true);
    }
  }

  private static Map<Integer, long[]> byShuffle(Collection<BlockKey> outputs) {
    return new HashMap<>(
        outputs.stream()
            .collect(
                Collectors.groupingBy(
                    BlockKey::shuffleId,
                    Collectors.collectingAndThen(
                        Collectors.toList(),
                        keys -> keys.stream().mapToLong(BlockKey::mapId).toArray()))));
  }

  private static Set<BlockKey> keys(Map<Integer, long[]> outputs) {
    Set<BlockKey> keys = new HashSet<>();
    outputs.forEach(
        (shuffle, maps) ->
            Arrays.stream(maps).forEach(mapId -> keys.add(new BlockKey(shuffle, mapId))));
    return keys;
  }
}
