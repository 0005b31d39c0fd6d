package io.weft.spark.rapids;

import com.nvidia.spark.rapids.GpuDeviceManager;
import com.nvidia.spark.rapids.jni.RmmSpark;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function0;
import scala.runtime.BoxedUnit;

/**
 * The threads of spark-rapids' client and server. They are bound to the executor's GPU and known to
 * its memory manager, as spark-rapids requires of its shuffle threads.
 */
final class DeviceThreads implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceThreads.class);
  private static final long CLOSE_MILLIS = 2000;

  private final ExecutorService client;
  private final ExecutorService copy;
  private final ExecutorService server;
  private final ExecutorService sends;

  /**
   * Creates pools whose threads start on demand.
   *
   * @param clients the limit of client threads
   * @param keepAliveSeconds how long idle threads stay
   */
  DeviceThreads(int clients, int keepAliveSeconds) {
    client = pool("client", Math.max(1, clients), keepAliveSeconds);
    copy = pool("copy", 1, keepAliveSeconds);
    server = pool("server", 1, keepAliveSeconds);
    sends = pool("sends", 1, keepAliveSeconds);
  }

  private static ExecutorService pool(String name, int threads, int keepAliveSeconds) {
    AtomicInteger number = new AtomicInteger();
    ThreadFactory factory =
        task -> {
          String suffix = threads == 1 ? "" : "-" + number.incrementAndGet();
          Thread thread = new Thread(task, "weft-rapids-" + name + suffix);
          thread.setDaemon(true);
          return thread;
        };
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(
            threads,
            threads,
            Math.max(1, keepAliveSeconds),
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            bound(factory));
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }

  private static ThreadFactory bound(ThreadFactory factory) {
    Function0<BoxedUnit> forget =
        () -> {
          RmmSpark.removeAllCurrentThreadAssociation();
          return BoxedUnit.UNIT;
        };
    return GpuDeviceManager.wrapThreadFactory(factory, null, forget);
  }

  /** Threads for the throttle, which allocates no GPU memory but creates objects with a stream. */
  static ThreadFactory throttle() {
    return bound(
        task -> {
          Thread thread = new Thread(task, "weft-rapids-throttle");
          thread.setDaemon(true);
          return thread;
        });
  }

  ExecutorService client() {
    return client;
  }

  ExecutorService copy() {
    return copy;
  }

  ExecutorService server() {
    return server;
  }

  /** The pool for the server's loop, which ends when the server is closed. */
  ExecutorService sends() {
    return sends;
  }

  /** Refuses new tasks and waits up to 2 s per pool for submitted ones. */
  @Override
  public void close() {
    List<ExecutorService> all = List.of(client, copy, server, sends);
    all.forEach(ExecutorService::shutdown);
    for (ExecutorService each : all) {
      try {
        if (!each.awaitTermination(CLOSE_MILLIS, TimeUnit.MILLISECONDS)) {
          LOG.warn("Threads of spark-rapids' shuffle do not end: {}", each);
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return;
      }
    }
  }
}
