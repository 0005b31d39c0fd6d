package io.weft.spark.driver;

import io.weft.spark.config.AdoptionSettings;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.runtime.CopyFolder;
import io.weft.spark.runtime.Messages.Copied;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.FetchFailed;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copies of map outputs that executors have made, on the driver. When an executor is removed,
 * or a task could not fetch from it, readers of its outputs are sent to their copies. Deletes the
 * copies of ended shuffles, all copies at the end, and those of dead applications of the user at
 * the start.
 *
 * <p>If a copy cannot be read, the other copies of its shuffle are not read either. After a few
 * such failures no reader is sent to copies any more: each costs an attempt of a stage, and Spark
 * allows few.
 *
 * <p>If two executors have copied an output, the first report counts.
 *
 * <p>Owns the thread "weft-copies", for calls to the file system, and "weft-copies-moves", which
 * never waits for one. Thread-safe.
 */
public final class SurvivingOutputs extends SparkListener implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SurvivingOutputs.class);
  private static final long POLL_MILLIS = 1000;
  private static final long END_MILLIS = 10_000;

  /**
   * Time for a living executor on the host to adopt the outputs in place, which is cheaper. After a
   * failed fetch, time for Spark to end the stage and forget the executor's outputs; it computes
   * them again after 200 ms.
   */
  private static final long ADOPTION_MILLIS = 100;

  /** Time to the second check, for failures whose outputs Spark forgets late. */
  private static final long SECOND_CHECK_MILLIS = 60;

  /** Copies of a leaving executor are gathered for this time, because a move visits all outputs. */
  private static final long GATHER_MILLIS = 150;

  /** So often broken copies may cost an attempt of a stage. */
  private static final int MAX_BROKEN = 3;

  /** Executors whose copies are in progress may write for a short time after the deletion. */
  private static final long LATE_COPIES_NANOS = TimeUnit.MILLISECONDS.toNanos(300);

  /** A mark is renewed after this part of the age at which it is swept. */
  private static final int MARKS = 4;

  private final DriverState state;
  private final OutputAdoptions places;
  private final SparkConf conf;
  private final String application;
  private final Duration sweepAge;

  /** The places of copies by map id, by shuffle. */
  private final Map<Integer, Map<Long, BlockManagerId>> copies = new ConcurrentHashMap<>();

  /** Shuffles of which a copy could not be read. Their copies are not used. */
  private final Set<Integer> givenUp = ConcurrentHashMap.newKeySet();

  private final ScheduledThreadPoolExecutor thread = scheduler("weft-copies");
  private final ScheduledThreadPoolExecutor moves = scheduler("weft-copies-moves");

  /** Null until it was created; only the thread uses it, and later the thread of the end. */
  private volatile CopyFolder folder;

  /** Only the thread uses these. */
  private long marked;

  private boolean warned;
  private boolean swept;

  /** The copies of leaving executors that are to be moved, by executor. Guarded by itself. */
  private final Map<String, Map<Integer, Map<Long, BlockManagerId>>> leaving = new HashMap<>();

  /** Lost executors whose outputs will be moved soon. */
  private final Set<String> lost = ConcurrentHashMap.newKeySet();

  /** The number of shuffles of which a copy could not be read. */
  private final AtomicInteger broken = new AtomicInteger();

  /**
   * Starts the threads.
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
    ScheduledFuture<?> unused =
        thread.scheduleWithFixedDelay(this::maintain, 0, POLL_MILLIS, TimeUnit.MILLISECONDS);
  }

  private static ScheduledThreadPoolExecutor scheduler(String name) {
    ScheduledThreadPoolExecutor scheduler =
        new ScheduledThreadPoolExecutor(1, work -> daemon(work, name));
    scheduler.setRejectedExecutionHandler(new ThreadPoolExecutor.DiscardPolicy());
    return scheduler;
  }

  private static Thread daemon(Runnable work, String name) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }

  /** An exception would end the repetition. */
  private void maintain() {
    try {
      maintainOnce();
    } catch (RuntimeException e) {
      LOG.debug("Copies were not looked after; this is tried again", e);
    }
  }

  private void maintainOnce() {
    if (folder == null) {
      create();
    } else {
      mark(folder);
      deleteEnded(folder);
    }
    if (!swept) {
      swept = true;
      sweep();
    }
  }

  /** Creates the folder. The next call tries again. */
  private void create() {
    CopyFolder opened = null;
    try {
      opened = CopyFolder.open(conf, application, "");
      opened.create();
      marked = System.nanoTime();
      folder = opened;
      LOG.info("Map outputs are copied to {}", opened);
    } catch (IOException | RuntimeException e) {
      if (opened != null) {
        opened.close();
      }
      if (warned) {
        LOG.debug("The folder for copies of map outputs was not created", e);
      } else {
        warned = true;
        LOG.warn("Map outputs are not copied until the folder for copies can be created", e);
      }
    }
  }

  private void mark(CopyFolder current) {
    if (System.nanoTime() - marked <= sweepAge.toNanos() / MARKS) {
      return;
    }
    try {
      current.mark();
      marked = System.nanoTime();
    } catch (NoSuchFileException e) {
      LOG.warn("The folder {} of copies was deleted, and is created again", current);
      copies.clear();
      recreate(current);
    } catch (IOException | RuntimeException e) {
      LOG.debug("The mark in {} was not renewed; this is tried again", current, e);
    }
  }

  private void recreate(CopyFolder current) {
    try {
      current.create();
      marked = System.nanoTime();
    } catch (IOException | RuntimeException e) {
      LOG.debug("{} was not created again; this is tried again", current, e);
    }
  }

  /** A deletion may take seconds, so the mark is renewed meanwhile. */
  private void deleteEnded(CopyFolder current) {
    for (int shuffle : DriverState.ended(List.copyOf(copies.keySet()))) {
      mark(current);
      // Before the deletion, so that a copy reported during it is deleted by the next round.
      copies.remove(shuffle);
      givenUp.remove(shuffle);
      try {
        current.deleteShuffle(shuffle);
      } catch (IOException | RuntimeException e) {
        copies.putIfAbsent(shuffle, new ConcurrentHashMap<>());
        LOG.debug("Copies of shuffle {} were not deleted; this is tried again", shuffle, e);
      }
    }
  }

  private void sweep() {
    try {
      String path = SurviveSettings.path(conf).orElseThrow();
      CopyFolder.sweep(path, SparkHadoopUtil.get().newConfiguration(conf), sweepAge)
          .forEach(deleted -> LOG.info("Deleted {}, copies of an application that died", deleted));
    } catch (IOException | RuntimeException e) {
      LOG.warn("Copies of applications that died were not deleted", e);
    }
  }

  /**
   * Takes the message of an executor. Does not block. Without the mark, a sweep could delete the
   * copy at any time.
   */
  public void copied(Copied copy) {
    if (folder == null) {
      return;
    }
    Map<Long, BlockManagerId> known =
        copies.computeIfAbsent(copy.shuffleId(), shuffle -> new ConcurrentHashMap<>());
    if (givenUp.contains(copy.shuffleId())) {
      return;
    }
    if (copy.own()) {
      known.putIfAbsent(copy.mapId(), SurviveSettings.place(copy.executorId()));
    }
    BlockManagerId place = known.get(copy.mapId());
    if (place != null && (copy.leaving() || !state.isRunning(copy.executorId()))) {
      gather(copy, place);
    }
  }

  /** Whether an executor has reported a copy of an output. */
  public boolean isCopied(int shuffle, long map) {
    return copies.getOrDefault(shuffle, Map.of()).containsKey(map);
  }

  /**
   * Takes the message that a copy could not be read. Does not block. Spark takes the reader for the
   * place of a block that its own iterator reads from a copy, so it would not compute it again.
   */
  public void notRead(int shuffle) {
    forget(shuffle);
    places.forgetCopies(shuffle);
  }

  private void gather(Copied copy, BlockManagerId place) {
    synchronized (leaving) {
      if (leaving.isEmpty()) {
        ScheduledFuture<?> unused =
            moves.schedule(this::moveGathered, GATHER_MILLIS, TimeUnit.MILLISECONDS);
      }
      leaving
          .computeIfAbsent(copy.executorId(), executor -> new HashMap<>())
          .computeIfAbsent(copy.shuffleId(), shuffle -> new HashMap<>())
          .put(copy.mapId(), place);
    }
  }

  private void moveGathered() {
    Map<String, Map<Integer, Map<Long, BlockManagerId>>> gathered;
    synchronized (leaving) {
      gathered = Map.copyOf(leaving);
      leaving.clear();
    }
    gathered.forEach(this::move);
  }

  private void move(String executor, Map<Integer, Map<Long, BlockManagerId>> outputs) {
    if (broken.get() < MAX_BROKEN) {
      places.move(executor, outputs);
    }
  }

  /**
   * After a failed fetch, Spark forgets all outputs of the executor and computes them again, even
   * if it removes the executor much later or never. So they are read from their copies. Those that
   * it did not forget stay: the executor may live, and Spark ignores some failures.
   */
  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    if (!(end.reason() instanceof FetchFailed failed) || failed.bmAddress() == null) {
      return;
    }
    if (failed.bmAddress().executorId().equals(SurviveSettings.placeId())) {
      forget(failed.shuffleId());
    } else {
      moveSoon(failed.bmAddress().executorId());
    }
  }

  /** Many tasks may report the same loss. */
  private void moveSoon(String executor) {
    if (lost.add(executor)) {
      ScheduledFuture<?> unused =
          moves.schedule(() -> moveOrRestore(executor), ADOPTION_MILLIS, TimeUnit.MILLISECONDS);
    }
  }

  private void moveOrRestore(String executor) {
    lost.remove(executor);
    if (state.isRunning(executor)) {
      restore(executor);
      ScheduledFuture<?> unused =
          moves.schedule(() -> restore(executor), SECOND_CHECK_MILLIS, TimeUnit.MILLISECONDS);
    } else {
      move(executor, copies);
    }
  }

  private void restore(String executor) {
    if (broken.get() < MAX_BROKEN) {
      places.restore(executor, copies);
    }
  }

  /** Forgets the copies of a shuffle of which one could not be read. */
  private void forget(int shuffle) {
    if (!givenUp.add(shuffle)) {
      return; // Another task has reported a failure.
    }
    // The key stays, so that the files are deleted with the shuffle.
    Map<Long, BlockManagerId> dropped = copies.put(shuffle, new ConcurrentHashMap<>());
    if (dropped == null || dropped.isEmpty()) {
      return; // Not a shuffle of Weft.
    }
    LOG.warn("A copy was not read; {} copies of its shuffle are left unused", dropped.size());
    if (broken.incrementAndGet() == MAX_BROKEN) {
      LOG.warn("Copies are not used any more, because some were not read {} times", MAX_BROKEN);
    }
  }

  /** Must be called after the state knows of the end. Called on the thread of listeners. */
  @Override
  public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
    if (AdoptionSettings.ENABLED.get(conf)) {
      moveSoon(removed.executorId());
    } else {
      move(removed.executorId(), copies);
    }
  }

  /** Stops the threads and deletes all copies. Waits 10 s at most. */
  @Override
  public void close() {
    moves.shutdownNow();
    thread.shutdownNow();
    Thread end = daemon(this::end, "weft-copies-end");
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
      LockSupport.parkNanos(LATE_COPIES_NANOS);
      last.deleteAll();
    } catch (IOException | RuntimeException e) {
      LOG.warn("Copies in {} were not deleted; a later application does it", last, e);
    }
  }
}
