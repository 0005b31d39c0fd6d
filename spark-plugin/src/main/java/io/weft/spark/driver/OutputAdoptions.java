package io.weft.spark.driver;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.compat.StatusLock;
import io.weft.spark.runtime.Messages.Adopt;
import io.weft.spark.runtime.Messages.Adoption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.IntPredicate;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Moves the places of map outputs from a dead executor to one that has adopted them, as
 * decommissioning does.
 *
 * <p>A place is moved only if the tracker has the output of that map id at the dead executor, or
 * had it there when Spark removed it and no other attempt has taken its place since. Spark may have
 * discarded a removed output together with others, because all tasks of its stage must run again.
 * So removed outputs of indeterminate and barrier stages are never brought back, nor any while a
 * repeated task is known to have made other rows.
 *
 * <p>The work runs on a thread of its own, "weft-adoptions", because Spark may hold the locks of
 * statuses while it serializes them. Thread-safe.
 */
public final class OutputAdoptions implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(OutputAdoptions.class);

  private final DriverState state;
  private final IntPredicate restorable;
  private final Map<String, CompletableFuture<Adoption>> running = new ConcurrentHashMap<>();
  private final ExecutorService worker = Executors.newSingleThreadExecutor(OutputAdoptions::thread);

  /**
   * Starts without adoptions.
   *
   * @param restorable whether removed outputs of a shuffle may be brought back: a map task of it
   *     may run again alone, and makes the same rows
   */
  public OutputAdoptions(DriverState state, IntPredicate restorable) {
    this.state = state;
    this.restorable = restorable;
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "weft-adoptions");
    thread.setDaemon(true);
    return thread;
  }

  /** Answers at once: the result if there is one, else that the executor shall ask again. */
  Adoption answer(Adopt asked) {
    String key = asked.adopter() + " " + asked.executorId() + "-" + asked.incarnation();
    CompletableFuture<Adoption> result =
        running.computeIfAbsent(
            key, unused -> CompletableFuture.supplyAsync(() -> move(asked), worker));
    if (!result.isDone()) {
      return Adoption.PENDING;
    }
    running.remove(key, result);
    try {
      return result.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Adoption.PENDING;
    } catch (ExecutionException e) {
      LOG.warn("The outputs of executor {} are not moved", asked.executorId(), e.getCause());
      return Adoption.refused("the driver failed: " + e.getCause());
    }
  }

  private Adoption move(Adopt asked) {
    Optional<String> refusal = refusal(asked).or(StatusLock::objection);
    if (refusal.isPresent()) {
      return Adoption.refused(refusal.get());
    }
    SparkEnv env = SparkEnv.get();
    if (env == null || !(env.mapOutputTracker() instanceof MapOutputTrackerMaster tracker)) {
      return Adoption.refused("the application ends");
    }
    Map<Integer, long[]> moved = new HashMap<>();
    asked.outputs().forEach((shuffle, maps) -> move(tracker, shuffle, maps, asked, moved));
    if (!moved.isEmpty()) {
      // Executors then ask again where outputs are.
      tracker.incrementEpoch();
      state.activity().adopted(asked.adopter(), asked.executorId(), count(moved));
    }
    LOG.info(
        "Executor {} adopted {} map outputs of {} shuffles of executor {}, which died; {} of its"
            + " outputs are not needed or must be computed again",
        asked.adopter(),
        count(moved),
        moved.size(),
        asked.executorId(),
        count(asked.outputs()) - count(moved));
    return Adoption.moved(moved);
  }

  private static long count(Map<Integer, long[]> outputs) {
    return outputs.values().stream().mapToLong(maps -> maps.length).sum();
  }

  private Optional<String> refusal(Adopt asked) {
    PeerAddress dead = state.peer(asked.executorId());
    if (dead == null || !dead.incarnation().equals(asked.incarnation())) {
      return Optional.of("the driver does not know this incarnation of the dead executor");
    }
    return state.isRunning(asked.adopter())
        ? Optional.empty()
        : Optional.of("the driver has removed the executor that adopts");
  }

  private void move(
      MapOutputTrackerMaster tracker,
      int shuffle,
      long[] maps,
      Adopt asked,
      Map<Integer, long[]> moved) {
    Option<ShuffleStatus> found = tracker.shuffleStatuses().get(shuffle);
    if (found.isEmpty()) {
      return;
    }
    ShuffleStatus statuses = found.get();
    boolean mayRestore = restorable.test(shuffle);
    long[] wanted = maps.clone();
    Arrays.sort(wanted);
    long[] places = new long[wanted.length];
    int[] count = new int[1];
    StatusLock.locked(
        statuses,
        () -> {
          // Within the lock: Spark records a mismatch before it removes outputs that depend on it.
          boolean restores = mayRestore && !anyMadeOtherRows(tracker);
          for (int index = 0; index < statuses.mapStatuses().length; index++) {
            MapStatus status = movable(statuses, index, asked, restores);
            if (status != null && Arrays.binarySearch(wanted, status.mapId()) >= 0) {
              statuses.updateMapOutput(status.mapId(), location(asked));
              places[count[0]++] = status.mapId();
            }
          }
        });
    if (count[0] > 0) {
      moved.put(shuffle, Arrays.copyOf(places, count[0]));
    }
  }

  /**
   * The status of a map task that is at the dead executor, or was there when Spark removed it, or
   * was moved from there before; null if there is none.
   */
  private static MapStatus movable(
      ShuffleStatus statuses, int index, Adopt asked, boolean restores) {
    MapStatus current = statuses.mapStatuses()[index];
    if (current != null) {
      return isAt(current, asked.executorId()) || isAt(current, asked.adopter()) ? current : null;
    }
    MapStatus removed = restores ? statuses.mapStatusesDeleted()[index] : null;
    return removed != null && isAt(removed, asked.executorId()) ? removed : null;
  }

  private static boolean isAt(MapStatus status, String executorId) {
    return status.location().executorId().equals(executorId);
  }

  private static boolean anyMadeOtherRows(MapOutputTrackerMaster tracker) {
    var all = tracker.shuffleStatuses().valuesIterator();
    while (all.hasNext()) {
      if (StatusLock.madeOtherRows(all.next())) {
        return true;
      }
    }
    return false;
  }

  private static BlockManagerId location(Adopt asked) {
    return BlockManagerId.apply(
        asked.adopter(), asked.host(), asked.port(), Option.apply(asked.topology()));
  }

  /** Stops the thread. */
  @Override
  public void close() {
    worker.shutdownNow();
  }
}
