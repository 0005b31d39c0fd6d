package io.weft.spark.driver;

import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.runtime.CopyFolder;
import io.weft.spark.runtime.Messages.Copied;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copies of map outputs that executors have made, on the driver. When an executor is removed,
 * readers of its outputs are sent to their copies. Deletes the copies of ended shuffles, all copies
 * at the end, and those of dead applications of the user at the start.
 *
 * <p>Owns the thread "weft-survive", for calls to the file system. Thread-safe.
 */
public final class SurvivingOutputs extends SparkListener implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SurvivingOutputs.class);
  private static final long POLL_MILLIS = 1000;
  private static final long END_MILLIS = 10_000;

  /** Time for a living executor on the host to adopt the outputs in place, which is cheaper. */
  private static final long ADOPTION_MILLIS = 100;

  /** A mark is renewed after this part of the age at which it is swept. */
  private static final int MARKS = 4;

  private final DriverState state;
  private final OutputAdoptions places;
  private final SparkConf conf;
  private final String application;
  private final Duration sweepAge;

  /** The map ids of copied outputs, by shuffle. */
  private final Map<Integer, Set<Long>> copies = new ConcurrentHashMap<>();

  private final ScheduledThreadPoolExecutor thread =
      new ScheduledThreadPoolExecutor(1, work -> daemon(work, "weft-survive"));

  /** Null until it was opened; only the thread uses it, and later the thread of the end. */
  private volatile CopyFolder folder;

  private long marked;

  /**
   * Starts the thread.
   *
   * @param application name of its folder
   */
  public SurvivingOutputs(
      DriverState state, OutputAdoptions places, SparkConf conf, String application) {
    this.state = state;
    this.places = places;
    this.conf = conf;
    this.application = application;
    this.sweepAge = SurviveSettings.SWEEP_AGE.get(conf);
    thread.setRejectedExecutionHandler(new ThreadPoolExecutor.DiscardPolicy());
    thread.execute(this::start);
    ScheduledFuture<?> unused =
        thread.scheduleWithFixedDelay(
            this::maintain, POLL_MILLIS, POLL_MILLIS, TimeUnit.MILLISECONDS);
  }

  private static Thread daemon(Runnable work, String name) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }

  private void start() {
    try {
      folder = CopyFolder.open(conf, application);
      folder.create();
      marked = System.nanoTime();
      LOG.info("Map outputs are copied to {}", folder);
    } catch (IOException | RuntimeException e) {
      LOG.warn("The folder for copies of map outputs was not created", e);
    }
    try {
      String path = SurviveSettings.path(conf).orElseThrow();
      CopyFolder.sweep(path, SparkHadoopUtil.get().newConfiguration(conf), sweepAge)
          .forEach(deleted -> LOG.info("Deleted {}, copies of an application that died", deleted));
    } catch (IOException | RuntimeException e) {
      LOG.warn("Copies of applications that died were not deleted", e);
    }
  }

  private void maintain() {
    CopyFolder current = folder;
    if (current == null) {
      return;
    }
    try {
      if (System.nanoTime() - marked > sweepAge.toNanos() / MARKS) {
        current.mark();
        marked = System.nanoTime();
      }
      for (int shuffle : DriverState.ended(List.copyOf(copies.keySet()))) {
        copies.remove(shuffle);
        current.deleteShuffle(shuffle);
      }
    } catch (IOException | RuntimeException e) {
      LOG.debug("Copies in {} were not looked after; they are deleted at the end", current, e);
    }
  }

  /** Takes the message of an executor. Does not block. */
  public void copied(Copied copy) {
    copies
        .computeIfAbsent(copy.shuffleId(), shuffle -> ConcurrentHashMap.newKeySet())
        .add(copy.mapId());
    if (copy.leaving() || !state.isRunning(copy.executorId())) {
      places.move(
          copy.executorId(),
          SurviveSettings.place(),
          Map.of(copy.shuffleId(), Set.of(copy.mapId())));
    }
  }

  /** Must be called after the state knows of the end. Called on the thread of listeners. */
  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    Runnable move = () -> places.move(removed.executorId(), SurviveSettings.place(), copies);
    if (AdoptionSettings.isOn(conf)) {
      ScheduledFuture<?> unused = thread.schedule(move, ADOPTION_MILLIS, TimeUnit.MILLISECONDS);
    } else {
      move.run();
    }
  }

  /** Stops the thread and deletes all copies. Waits 10 s at most. */
  @Override
  public void close() {
    thread.shutdownNow();
    Thread end = daemon(this::end, "weft-survive-end");
    end.start();
    try {
      end.join(END_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (end.isAlive()) {
      LOG.warn("Copies in {} are not deleted yet; a later application does it", folder);
    }
  }

  private void end() {
    CopyFolder last = folder;
    if (last == null) {
      return;
    }
    try (last) {
      last.deleteAll();
    } catch (IOException | RuntimeException e) {
      LOG.warn("Copies in {} were not deleted; a later application does it", last, e);
    }
  }
}
