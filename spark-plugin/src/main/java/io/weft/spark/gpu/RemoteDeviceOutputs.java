package io.weft.spark.gpu;

import io.weft.device.Deadline;
import io.weft.shuffle.device.HostReadClient;
import io.weft.shuffle.store.BlockKey;
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
 * Knows which map outputs other executors have on their GPUs. It asks all executors at once, on
 * threads named "weft-device-requests-N", and only once per output, because an output never moves
 * between an executor's GPU and its host. Thread-safe; calls block.
 */
public final class RemoteDeviceOutputs implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteDeviceOutputs.class);
  private static final int THREADS = 16;
  private static final int IDLE_SECONDS = 10;
  private static final long POLL_MILLIS = 100;

  private final HostReadClient client;
  private final Duration timeout;
  private final ThreadPoolExecutor threads;

  /** Known outputs by shuffle: true if the output is on a GPU. */
  private final Map<Integer, Map<Output, Boolean>> known = new ConcurrentHashMap<>();

  private record Output(String executor, BlockKey key) {}

  /**
   * Starts without knowledge.
   *
   * @param timeout limit of the wait for all answers together
   */
  public RemoteDeviceOutputs(HostReadClient client, Duration timeout) {
    this.client = client;
    this.timeout = timeout;
    AtomicInteger number = new AtomicInteger();
    this.threads =
        new ThreadPoolExecutor(
            THREADS,
            THREADS,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            task -> {
              Thread thread = new Thread(task, "weft-device-requests-" + number.incrementAndGet());
              thread.setDaemon(true);
              return thread;
            });
    threads.allowCoreThreadTimeOut(true);
  }

  /** Thrown if an executor does not answer; the message names it. */
  public static final class UnansweredException extends IOException {
    private static final long serialVersionUID = 1L;

    private final String executor;

    UnansweredException(String executor, String why, Throwable cause) {
      super(
          "executor "
              + executor
              + " does not report which map outputs are on its GPU, so none of them can be read: "
              + why,
          cause);
      this.executor = executor;
    }

    public String executor() {
      return executor;
    }
  }

  /**
   * Finds the map outputs on GPUs, and asks executors where they are not known. A failed request is
   * repeated once.
   *
   * @param byExecutor map outputs by the executor that has them
   * @param cancelCheck is called during the wait, and throws if the answer is no longer needed
   * @return the outputs on GPUs, for each executor
   * @throws UnansweredException naming the first executor that gives no answer
   */
  public Map<String, Set<BlockKey>> find(
      Map<String, List<BlockKey>> byExecutor, Runnable cancelCheck)
      throws UnansweredException, InterruptedException {
    Map<String, Set<BlockKey>> held = new HashMap<>();
    Map<String, Future<Set<BlockKey>>> asked = new HashMap<>();
    try {
      byExecutor.forEach(
          (executor, keys) -> {
            Set<BlockKey> onGpu = held.computeIfAbsent(executor, id -> new HashSet<>());
            List<BlockKey> unknown = sort(executor, keys, onGpu);
            if (!unknown.isEmpty()) {
              asked.put(executor, threads.submit(() -> ask(executor, unknown)));
            }
          });
      Deadline deadline = Deadline.after(timeout);
      for (Map.Entry<String, Future<Set<BlockKey>>> each : asked.entrySet()) {
        held.get(each.getKey())
            .addAll(answer(each.getKey(), each.getValue(), deadline, cancelCheck));
      }
      return held;
    } catch (RejectedExecutionException e) {
      throw new IllegalStateException("this executor ends", e);
    } finally {
      asked.values().forEach(each -> each.cancel(true));
    }
  }

  /** Adds the known outputs to the result; returns the unknown ones. */
  private List<BlockKey> sort(String executor, List<BlockKey> keys, Set<BlockKey> onGpu) {
    List<BlockKey> unknown = new ArrayList<>();
    for (BlockKey key : keys) {
      Boolean held = isHeld(executor, key);
      if (held == null) {
        unknown.add(key);
      } else if (held) {
        onGpu.add(key);
      }
    }
    return unknown;
  }

  /** Null if unknown. */
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
      String executor, Future<Set<BlockKey>> asked, Deadline deadline, Runnable cancelCheck)
      throws UnansweredException, InterruptedException {
    while (true) {
      cancelCheck.run();
      try {
        return asked.get(POLL_MILLIS, TimeUnit.MILLISECONDS);
      } catch (ExecutionException e) {
        throw new UnansweredException(executor, e.getCause().getMessage(), e.getCause());
      } catch (TimeoutException e) {
        if (deadline.expired()) {
          throw new UnansweredException(executor, "no answer within " + deadline, e);
        }
      }
    }
  }

  /** Forgets the outputs of a shuffle. */
  public void forget(int shuffleId) {
    known.remove(shuffleId);
  }

  /** Ends requests in flight. */
  @Override
  public void close() {
    threads.shutdownNow();
    known.clear();
  }
}
