package io.weft.spark.gpu;

import io.weft.catalog.BlockKey;
import io.weft.device.Deadline;
import io.weft.deviceblocks.HostReadClient;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which map outputs other executors have on their GPUs. They are asked all at once, on threads
 * named "weft-device-questions-N", and once for each output: it never moves between an executor's
 * GPU and its host. Thread-safe; callers wait.
 */
public final class HeldOutputs implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(HeldOutputs.class);
  private static final int THREADS = 16;
  private static final int IDLE_SECONDS = 10;
  private static final long LOOK_MILLIS = 100;

  private final HostReadClient client;
  private final Duration patience;
  private final ThreadPoolExecutor threads;

  /** By shuffle: what is known of its outputs. */
  private final Map<Integer, Map<Output, Boolean>> known = new ConcurrentHashMap<>();

  private record Output(String executor, BlockKey key) {}

  /**
   * Knows nothing yet.
   *
   * @param patience the most that all answers together are waited for
   */
  public HeldOutputs(HostReadClient client, Duration patience) {
    this.client = client;
    this.patience = patience;
    AtomicInteger number = new AtomicInteger();
    this.threads =
        new ThreadPoolExecutor(
            THREADS,
            THREADS,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> {
              Thread thread = new Thread(task, "weft-device-questions-" + number.incrementAndGet());
              thread.setDaemon(true);
              return thread;
            });
    threads.allowCoreThreadTimeOut(true);
  }

  /** An executor that does not say what it has; the message names it. */
  public static final class UnansweredException extends IOException {
    private static final long serialVersionUID = 1L;

    private final String executor;

    UnansweredException(String executor, String why, Throwable cause) {
      super(
          "executor "
              + executor
              + " does not say which map outputs are on its GPU, so that none of them can be read: "
              + why,
          cause);
      this.executor = executor;
    }

    public String executor() {
      return executor;
    }
  }

  /**
   * Asks executors of which not all is known. A question that fails is put once more.
   *
   * @param byExecutor map outputs by the executor that has them somewhere
   * @param wanted is asked while it waits, and throws when nobody wants the answer any more
   * @return those that are on GPUs, for each executor
   * @throws UnansweredException naming the first executor that gives no answer
   */
  public Map<String, Set<BlockKey>> find(Map<String, List<BlockKey>> byExecutor, Runnable wanted)
      throws UnansweredException, InterruptedException {
    Map<String, Set<BlockKey>> held = new HashMap<>();
    Map<String, Future<Set<BlockKey>>> asked = new HashMap<>();
    try {
      byExecutor.forEach(
          (executor, keys) -> {
            Set<BlockKey> there = held.computeIfAbsent(executor, id -> new HashSet<>());
            List<BlockKey> unknown = sort(executor, keys, there);
            if (!unknown.isEmpty()) {
              asked.put(executor, threads.submit(() -> ask(executor, unknown)));
            }
          });
      Deadline deadline = Deadline.after(patience);
      for (Map.Entry<String, Future<Set<BlockKey>>> each : asked.entrySet()) {
        held.get(each.getKey()).addAll(answer(each.getKey(), each.getValue(), deadline, wanted));
      }
      return held;
    } catch (RejectedExecutionException e) {
      throw new IllegalStateException("this executor ends", e);
    } finally {
      asked.values().forEach(each -> each.cancel(true));
    }
  }

  /** Adds what is known to be there; returns what is not known. */
  private List<BlockKey> sort(String executor, List<BlockKey> keys, Set<BlockKey> there) {
    List<BlockKey> unknown = new ArrayList<>();
    for (BlockKey key : keys) {
      Boolean held = isHeld(executor, key);
      if (held == null) {
        unknown.add(key);
      } else if (held) {
        there.add(key);
      }
    }
    return unknown;
  }

  /** Null where nobody knows. */
  private Boolean isHeld(String executor, BlockKey key) {
    return known.getOrDefault(key.shuffleId(), Map.of()).get(new Output(executor, key));
  }

  private Set<BlockKey> ask(String executor, List<BlockKey> keys)
      throws IOException, InterruptedException {
    Set<BlockKey> held;
    try {
      held = client.held(executor, keys);
    } catch (IOException e) {
      LOG.warn("Executor {} is asked once more what is on its GPU: {}", executor, e.getMessage());
      held = client.held(executor, keys);
    }
    for (BlockKey key : keys) {
      known
          .computeIfAbsent(key.shuffleId(), id -> new ConcurrentHashMap<>())
          .put(new Output(executor, key), held.contains(key));
    }
    return held;
  }

  private static Set<BlockKey> answer(
      String executor, Future<Set<BlockKey>> asked, Deadline deadline, Runnable wanted)
      throws UnansweredException, InterruptedException {
    while (true) {
      wanted.run();
      try {
        return asked.get(LOOK_MILLIS, TimeUnit.MILLISECONDS);
      } catch (ExecutionException e) {
        throw new UnansweredException(executor, e.getCause().getMessage(), e.getCause());
      } catch (TimeoutException e) {
        if (deadline.expired()) {
          throw new UnansweredException(executor, "no answer within " + deadline, e);
        }
      }
    }
  }

  /** What is known of a shuffle may not be so any more. */
  public void forget(int shuffleId) {
    known.remove(shuffleId);
  }

  /** Ends questions that are under way. */
  @Override
  public void close() {
    threads.shutdownNow();
    known.clear();
  }
}
