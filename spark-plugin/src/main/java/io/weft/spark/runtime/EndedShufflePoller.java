package io.weft.spark.runtime;

import io.weft.spark.runtime.Messages.AskEnded;
import io.weft.spark.runtime.Messages.Ended;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Frees outputs of shuffles whose end this executor has missed. Spark notifies only executors that
 * it believes to be alive, and may believe that a running one is lost, as after a fetch failure.
 * Once a minute it asks the driver about shuffles that the executor has held for at least a minute.
 *
 * <p>One daemon thread, "weft-ended-shuffles", ended by {@link #close()}.
 */
final class EndedShufflePoller implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(EndedShufflePoller.class);
  private static final long PERIOD_SECONDS = 60;

  private final PluginContext context;
  private final Supplier<Collection<Integer>> held;
  private final IntConsumer free;
  private final ScheduledExecutorService thread;

  /** Shuffles held at the last poll. */
  private Set<Integer> before = Set.of();

  /**
   * The last shuffle of the last message. With too many for one message, the next poll continues
   * there.
   */
  private int lastAsked = -1;

  /**
   * Creates a poller that has not started.
   *
   * @param held shuffles whose outputs this executor holds; may have duplicates
   * @param free frees the outputs of one shuffle
   */
  EndedShufflePoller(PluginContext context, Supplier<Collection<Integer>> held, IntConsumer free) {
    this.context = context;
    this.held = held;
    this.free = free;
    this.thread = Executors.newSingleThreadScheduledExecutor(EndedShufflePoller::newThread);
  }

  private static Thread newThread(Runnable task) {
    Thread thread = new Thread(task, "weft-ended-shuffles");
    thread.setDaemon(true);
    return thread;
  }

  /** Starts to poll. */
  EndedShufflePoller start() {
    var unused =
        thread.scheduleWithFixedDelay(this::poll, PERIOD_SECONDS, PERIOD_SECONDS, TimeUnit.SECONDS);
    return this;
  }

  /** Polls once. Called by one thread at a time. */
  void poll() {
    try {
      List<Integer> asked = next();
      if (!asked.isEmpty()) {
        ask(asked);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Exception e) {
      LOG.debug("The driver did not answer which shuffles have ended; the next poll asks again", e);
    }
  }

  private List<Integer> next() {
    TreeSet<Integer> all = new TreeSet<>(held.get());
    TreeSet<Integer> old = new TreeSet<>(all);
    old.retainAll(before);
    before = all;
    List<Integer> inTurn = new ArrayList<>(old.tailSet(lastAsked, false));
    inTurn.addAll(old.headSet(lastAsked, true));
    List<Integer> asked = inTurn.subList(0, Math.min(AskEnded.MOST, inTurn.size()));
    lastAsked = asked.isEmpty() ? -1 : asked.get(asked.size() - 1);
    return asked;
  }

  private void ask(List<Integer> asked) throws Exception {
    Ended ended = (Ended) MessageCodec.ask(context, new AskEnded(asked));
    for (int shuffle : ended.shuffles()) {
      if (asked.contains(shuffle)) {
        LOG.info("Freeing shuffle {}, which has ended without a message to this executor", shuffle);
        free.accept(shuffle);
      }
    }
  }

  @Override
  public void close() {
    thread.shutdownNow();
  }
}
