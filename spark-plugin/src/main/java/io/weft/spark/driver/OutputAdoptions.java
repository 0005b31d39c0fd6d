package io.weft.spark.driver;

import io.weft.shuffle.AdoptionAgreement.Step;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.compat.StatusLock;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.runtime.Messages.Adopt;
import io.weft.spark.runtime.Messages.Adoption;
import io.weft.spark.runtime.Messages.Adoption.State;
import io.weft.spark.runtime.Messages.AskAdoption;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.IntPredicate;
import java.util.function.IntUnaryOperator;
import java.util.function.LongFunction;
import java.util.stream.LongStream;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Moves the places of map outputs from a dead executor to one that has adopted them, or to their
 * copies, as decommissioning does.
 *
 * <p>A place is moved only if the tracker has the output of that map id at the dead executor, or
 * had it there when Spark removed it and no other attempt has taken its place since. Spark may have
 * discarded a removed output together with others, because all tasks of its stage must run again.
 * So removed outputs of indeterminate and barrier stages are never brought back, nor any while a
 * repeated task is known to have made other rows. While a map stage runs, outputs of its shuffle
 * are not moved: Spark repeats its tasks of the dead executor in any case. The end of a stage is
 * heard late, so a stage whose tasks have all made their outputs counts as ended.
 *
 * <p>Each executor has at most one request. A later one ends an earlier one that has not begun. All
 * are answered one after the other. So once a request is answered, no earlier one of that executor
 * moves anything any more.
 *
 * <p>The work runs on a thread of its own, "weft-adoptions", because Spark may hold the locks of
 * statuses while it serializes them. Thread-safe.
 */
public final class OutputAdoptions implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(OutputAdoptions.class);

  private final DriverState state;
  private final ShuffleStages stages;

  /** The last request of each executor. */
  private final Map<String, Request> requests = new ConcurrentHashMap<>();

  private final ExecutorService worker = Executors.newSingleThreadExecutor(OutputAdoptions::thread);

  /**
   * What Spark does with the map stages of shuffles.
   *
   * @param restorable whether removed outputs of a shuffle may be brought back: a map task of it
   *     may run again alone, and makes the same rows
   * @param running whether a map stage of a shuffle runs, perhaps not any more
   * @param firstTasks tasks of that stage if it is a first attempt, else 0
   */
  public record ShuffleStages(
      IntPredicate restorable, IntPredicate running, IntUnaryOperator firstTasks) {}

  /** A request of an executor. */
  private record Request(int number, Future<Adoption> result) {}

  /** Starts without adoptions. The thread starts with the first request. */
  public OutputAdoptions(DriverState state, ShuffleStages stages) {
    this.state = state;
    this.stages = stages;
  }

  private static Thread thread(Runnable work) {
    Thread thread = new Thread(work, "weft-adoptions");
    thread.setDaemon(true);
    return thread;
  }

  /** Takes a request. Answers at once: the result if there is one, else that it is pending. */
  Adoption answer(Adopt asked) {
    requests.keySet().removeIf(executor -> !state.isRunning(executor));
    if (!state.isRunning(asked.adopter())) {
      return Adoption.of(State.ADOPTER_REMOVED);
    }
    Request request = requests.compute(asked.adopter(), (executor, last) -> later(last, asked));
    return answer(request, asked.number());
  }

  private Request later(Request last, Adopt asked) {
    if (last != null && last.number >= asked.number()) {
      return last;
    }
    if (last != null) {
      last.result.cancel(false);
    }
    return new Request(asked.number(), worker.submit(() -> perform(asked)));
  }

  /** Answers at once: the result if there is one, else that it is pending. */
  Adoption answer(AskAdoption asked) {
    Request request = requests.get(asked.adopter());
    return request == null || request.number < asked.number()
        ? Adoption.of(State.UNKNOWN)
        : answer(request, asked.number());
  }

  private static Adoption answer(Request request, int number) {
    if (request.number != number) {
      return Adoption.refused("a later request has replaced it");
    }
    if (!request.result.isDone()) {
      return Adoption.of(State.PENDING);
    }
    try {
      return request.result.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Adoption.of(State.PENDING);
    } catch (CancellationException e) {
      return Adoption.refused("the application ends");
    } catch (ExecutionException e) {
      LOG.warn("A request about adopted map outputs failed", e.getCause());
      return Adoption.refused("the driver failed: " + e.getCause());
    }
  }

  private Adoption perform(Adopt asked) {
    if (!state.isRunning(asked.adopter())) {
      return Adoption.of(State.ADOPTER_REMOVED);
    }
    Optional<String> refusal = refusal(asked).or(StatusLock::objection);
    if (refusal.isPresent()) {
      return Adoption.refused(refusal.get());
    }
    SparkEnv env = SparkEnv.get();
    if (env == null || !(env.mapOutputTracker() instanceof MapOutputTrackerMaster tracker)) {
      return Adoption.refused("the application ends");
    }
    Move move = new Move(asked.executorId(), asked.step(), asked.adopter(), true);
    BlockManagerId place = location(asked);
    Outputs outputs = new Outputs(new HashMap<>(), new HashMap<>());
    try {
      asked
          .outputs()
          .forEach((shuffle, maps) -> perform(tracker, shuffle, among(maps, place), move, outputs));
    } finally {
      if (asked.step() == Step.MOVE) {
        // Executors then ask again where outputs are.
        tracker.incrementEpoch();
        record(asked, outputs);
      }
    }
    return Adoption.done(outputs.found);
  }

  /**
   * The answer to a request as it grows.
   *
   * @param found map ids by shuffle
   * @param moved numbers of outputs by shuffle whose place has changed
   */
  private record Outputs(Map<Integer, long[]> found, Map<Integer, Long> moved) {
    long all() {
      return moved.values().stream().mapToLong(Long::longValue).sum();
    }
  }

  private void record(Adopt asked, Outputs outputs) {
    long all = outputs.all();
    if (all == 0) {
      return;
    }
    outputs.moved.forEach(state.activity().shuffles()::adopted);
    state.activity().adopted(asked.adopter(), asked.executorId(), all);
    LOG.info(
        "Executor {} adopted {} map outputs of {} shuffles of executor {}, which died",
        asked.adopter(),
        all,
        outputs.moved.size(),
        asked.executorId());
  }

  private Optional<String> refusal(Adopt asked) {
    PeerAddress dead = state.peer(asked.executorId());
    return dead == null || !dead.incarnation().equals(asked.incarnation())
        ? Optional.of("the driver does not know this incarnation of the dead executor")
        : Optional.empty();
  }

  private static LongFunction<BlockManagerId> among(long[] maps, BlockManagerId place) {
    long[] wanted = maps.clone();
    Arrays.sort(wanted);
    return map -> Arrays.binarySearch(wanted, map) >= 0 ? place : null;
  }

  /**
   * Sends readers of outputs of an executor to places that have the same bytes. Returns at once.
   *
   * @param from the executor, which has ended, leaves or cannot be reached
   * @param outputs the other places of outputs of any executors, by map id, by shuffle
   */
  void move(String from, Map<Integer, Map<Long, BlockManagerId>> outputs) {
    moveLater(new Move(from, Step.MOVE, null, true), outputs);
  }

  /**
   * Like {@link #move}, but only for outputs that Spark has removed. Readers of the others still
   * use the executor.
   */
  void restore(String from, Map<Integer, Map<Long, BlockManagerId>> outputs) {
    moveLater(new Move(from, Step.MOVE, null, false), outputs);
  }

  /** Removes the outputs of a shuffle of which only copies are left. Returns at once. */
  void forgetCopies(int shuffle) {
    later(
        () -> {
          SparkEnv env = SparkEnv.get();
          if (env != null && env.mapOutputTracker() instanceof MapOutputTrackerMaster tracker) {
            Option<ShuffleStatus> known = tracker.shuffleStatuses().get(shuffle);
            if (known.isDefined()) {
              known.get().removeOutputsOnExecutor(SurviveSettings.placeId());
              tracker.incrementEpoch();
            }
          }
        });
  }

  private void moveLater(Move move, Map<Integer, Map<Long, BlockManagerId>> outputs) {
    later(() -> moveNow(move, outputs));
  }

  private void later(Runnable work) {
    try {
      worker.execute(work);
    } catch (RejectedExecutionException e) {
      LOG.debug("The application ends", e);
    }
  }

  private void moveNow(Move move, Map<Integer, Map<Long, BlockManagerId>> outputs) {
    Optional<String> objection = StatusLock.objection();
    if (objection.isPresent()) {
      LOG.warn("Map outputs of executor {} are not moved: {}", move.from(), objection.get());
      return;
    }
    SparkEnv env = SparkEnv.get();
    if (env == null || !(env.mapOutputTracker() instanceof MapOutputTrackerMaster tracker)) {
      return;
    }
    Outputs answer = new Outputs(new HashMap<>(), new HashMap<>());
    try {
      outputs.forEach((shuffle, maps) -> perform(tracker, shuffle, maps::get, move, answer));
    } catch (RuntimeException e) {
      LOG.warn("Map outputs of executor {} were not all moved", move.from(), e);
    } finally {
      if (!answer.moved.isEmpty()) {
        tracker.incrementEpoch();
        LOG.info("{} map outputs of executor {} are read from copies", answer.all(), move.from());
      }
    }
  }

  /**
   * A change of places in Spark's tracker.
   *
   * @param from the executor that has or had the outputs
   * @param adopter whose outputs count as moved already; null if there is none
   * @param current whether outputs move that Spark has not removed
   */
  private record Move(String from, Step step, String adopter, boolean current) {}

  private void perform(
      MapOutputTrackerMaster tracker,
      int shuffle,
      LongFunction<BlockManagerId> places,
      Move move,
      Outputs outputs) {
    Option<ShuffleStatus> known = tracker.shuffleStatuses().get(shuffle);
    if (known.isEmpty()) {
      return;
    }
    ShuffleStatus statuses = known.get();
    LongStream.Builder yes = LongStream.builder();
    StatusLock.locked(
        statuses,
        () -> {
          Rules rules = new Rules(tracker, move, shuffle, statuses);
          for (int index = 0; index < statuses.mapStatuses().length; index++) {
            MapStatus status = rules.status(statuses, index);
            BlockManagerId place = status == null ? null : places.apply(status.mapId());
            if (place == null) {
              continue;
            }
            if (move.step() == Step.MOVE && !isAt(status, place.executorId())) {
              moveTo(place, statuses, status, index);
              outputs.moved.merge(shuffle, 1L, Long::sum);
            }
            yes.add(status.mapId());
          }
        });
    long[] found = yes.build().toArray();
    if (found.length > 0) {
      outputs.found.put(shuffle, found);
    }
  }

  /**
   * Spark looks up map ids in a map of its own. When it brings a removed status back, it does not
   * enter the id again, so the output could not be moved a second time.
   */
  private static void moveTo(
      BlockManagerId place, ShuffleStatus statuses, MapStatus status, int index) {
    statuses.mapIdToMapIndex().update(status.mapId(), index);
    statuses.updateMapOutput(status.mapId(), place);
  }

  /** Which statuses of a shuffle a request is about. For one use within the statuses' lock. */
  private final class Rules {
    private final MapOutputTrackerMaster tracker;
    private final Move move;
    private final boolean moves;
    private final boolean mayRestore;

    /** Whether a task made other rows; null if it was not looked up yet. */
    private Boolean otherRows;

    Rules(MapOutputTrackerMaster tracker, Move move, int shuffle, ShuffleStatus statuses) {
      this.tracker = tracker;
      this.move = move;
      this.moves =
          move.step() != Step.KEEP
              && (!stages.running().test(shuffle) || allEnded(statuses, shuffle));
      this.mayRestore = moves && stages.restorable().test(shuffle);
    }

    /**
     * Whether all map tasks have ended. In a stage that repeats some tasks, those whose outputs
     * Spark has removed run again; so do all if none has an output.
     */
    private boolean allEnded(ShuffleStatus statuses, int shuffle) {
      boolean any = false;
      boolean first = stages.firstTasks().applyAsInt(shuffle) == statuses.mapStatuses().length;
      for (int index = 0; index < statuses.mapStatuses().length; index++) {
        MapStatus removed = statuses.mapStatusesDeleted()[index];
        boolean there = statuses.mapStatuses()[index] != null;
        any |= there;
        if (!there && !(first && removed != null && isAt(removed, move.from()))) {
          return false;
        }
      }
      return any;
    }

    /**
     * The status of a map task's output that was written by the dead executor; null if there is
     * none. The output is at that executor, or was moved to the adopter before, or Spark has
     * removed it while it was at that executor.
     */
    MapStatus status(ShuffleStatus statuses, int index) {
      MapStatus current = statuses.mapStatuses()[index];
      if (current != null) {
        boolean there = moves && move.current() && isAt(current, move.from());
        boolean before = move.adopter() != null && isAt(current, move.adopter());
        return there || before ? current : null;
      }
      MapStatus removed = mayRestore ? statuses.mapStatusesDeleted()[index] : null;
      return removed != null && isAt(removed, move.from()) && !anyMadeOtherRows() ? removed : null;
    }

    /** Within the lock: Spark records a mismatch before it removes outputs that depend on it. */
    private boolean anyMadeOtherRows() {
      if (otherRows == null) {
        otherRows = false;
        var all = tracker.shuffleStatuses().valuesIterator();
        while (!otherRows && all.hasNext()) {
          otherRows = StatusLock.madeOtherRows(all.next());
        }
      }
      return otherRows;
    }
  }

  private static boolean isAt(MapStatus status, String executorId) {
    return status.location().executorId().equals(executorId);
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
