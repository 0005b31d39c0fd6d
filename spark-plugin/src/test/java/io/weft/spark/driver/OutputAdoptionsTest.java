package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.AdoptionAgreement.Step;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.compat.MapStatuses;
import io.weft.spark.compat.StatusLock;
import io.weft.spark.config.Activation;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.driver.DriverState.ExecutorEndListener;
import io.weft.spark.driver.OutputAdoptions.ShuffleStages;
import io.weft.spark.runtime.Messages.Adopt;
import io.weft.spark.runtime.Messages.Adoption;
import io.weft.spark.runtime.Messages.Adoption.State;
import io.weft.spark.runtime.Messages.AskAdoption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.Resubmitted$;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.Success$;
import org.apache.spark.TaskEndReason;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The driver moves the places of adopted outputs, and only of those. With Spark's own tracker. */
class OutputAdoptionsTest {
  private static final int SHUFFLE = 7;
  private static final BlockManagerId DEAD = place("1");
  private static final BlockManagerId HEIR = place("2");
  private static final BlockManagerId THIRD = place("3");

  private static SparkContext spark;

  private final SparkConf conf = new SparkConf(false);
  private final DriverState state = new DriverState(Activation.decide(conf), conf);
  private final AtomicBoolean restorable = new AtomicBoolean(true);
  private final AtomicBoolean mapStageRuns = new AtomicBoolean();
  private final AtomicInteger firstTasks = new AtomicInteger();
  private final AtomicInteger number = new AtomicInteger();
  private final OutputAdoptions adoptions =
      new OutputAdoptions(
          state,
          new ShuffleStages(
              shuffle -> restorable.get(),
              shuffle -> mapStageRuns.get(),
              shuffle -> firstTasks.get()));
  private MapOutputTrackerMaster tracker;

  @BeforeAll
  static void startSpark() {
    spark =
        new SparkContext(
            new SparkConf(false)
                .setMaster("local[1]")
                .setAppName("adoptions")
                .set("spark.ui.enabled", "false")
                .set("spark.driver.host", "127.0.0.1"));
  }

  @AfterAll
  static void stopSpark() {
    spark.stop();
  }

  /** Three outputs of the dead executor with the map ids 10, 11 and 12, and one of a third. */
  @BeforeEach
  void register() {
    List.of("1", "2", "3").forEach(id -> state.announced(address(id, "0000000" + id)));
    tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    tracker.registerShuffle(SHUFFLE, 4, 1);
    for (int map = 0; map < 3; map++) {
      tracker.registerMapOutput(SHUFFLE, map, status(DEAD, 10 + map));
    }
    tracker.registerMapOutput(SHUFFLE, 3, status(THIRD, 13));
  }

  @AfterEach
  void unregister() {
    tracker.unregisterShuffle(SHUFFLE);
    adoptions.close();
  }

  @Test
  void placesMoveBeforeSparkNoticesTheDeath() {
    long epoch = tracker.getEpoch();
    assertThat(moved(adopt(10, 11, 12, 99))).containsExactlyInAnyOrder(10, 11, 12);
    assertThat(places()).containsExactly("2", "2", "2", "3");
    assertThat(tracker.getEpoch()).as("executors must ask again").isGreaterThan(epoch);
    tracker.removeOutputsOnExecutor("1");
    assertThat(places()).as("after Spark has noticed").containsExactly("2", "2", "2", "3");
  }

  @Test
  void removedOutputsComeBack() {
    endOf("1");
    tracker.removeOutputsOnExecutor("1");
    assertThat(tracker.getNumAvailableOutputs(SHUFFLE)).isEqualTo(1);
    assertThat(moved(adopt(10, 12))).containsExactlyInAnyOrder(10, 12);
    assertThat(places()).containsExactly("2", "none", "2", "3");
    assertThat(tracker.getNumAvailableOutputs(SHUFFLE)).isEqualTo(3);
  }

  /** Spark does not find an output that it has brought back. */
  @Test
  void outputsThatCameBackMoveAgain() {
    tracker.removeOutputsOnExecutor("1");
    assertThat(moved(adopt(10, 11))).containsExactlyInAnyOrder(10, 11);
    assertThat(places()).containsExactly("2", "2", "none", "3");
    adoptions.move("2", Map.of(SHUFFLE, Map.of(10L, SurviveSettings.place("2"))));
    await().untilAsserted(() -> assertThat(places()).containsExactly("fallback", "2", "none", "3"));
    tracker.updateMapOutput(SHUFFLE, 11, THIRD);
    assertThat(places()).as("Spark's own move").containsExactly("fallback", "3", "none", "3");
    tracker.removeOutputsOnExecutor("3");
    tracker.registerMapOutput(SHUFFLE, 1, status(DEAD, 50));
    assertThat(places()).as("computed again").containsExactly("fallback", "1", "none", "none");
    assertThat(status(1).mapId()).isEqualTo(50);
  }

  @Test
  void onlyRemovedOutputsAreRestored() {
    tracker.unregisterMapOutput(SHUFFLE, 2, DEAD);
    BlockManagerId copy = SurviveSettings.place("1");
    adoptions.restore("1", Map.of(SHUFFLE, Map.of(10L, copy, 12L, copy)));
    await().untilAsserted(() -> assertThat(places()).containsExactly("1", "1", "fallback", "3"));
  }

  @Test
  void aSelectionMovesNothing() {
    tracker.unregisterMapOutput(SHUFFLE, 0, DEAD);
    long epoch = tracker.getEpoch();
    assertThat(moved(adopt(Step.SELECT, 10, 11, 13, 99))).containsExactlyInAnyOrder(10, 11);
    assertThat(places()).containsExactly("none", "1", "1", "3");
    assertThat(tracker.getEpoch()).isEqualTo(epoch);
  }

  /** Spark repeats the tasks of the dead executor in a running map stage in any case. */
  @Test
  void nothingMovesWhileTheMapStageRuns() {
    assertThat(moved(adopt(10))).containsExactly(10);
    mapStageRuns.set(true);
    tracker.unregisterMapOutput(SHUFFLE, 2, DEAD);
    assertThat(moved(adopt(Step.SELECT, 11, 12))).isEmpty();
    assertThat(moved(adopt(10, 11, 12))).as("was moved before").containsExactly(10);
    assertThat(places()).containsExactly("2", "1", "none", "3");
  }

  @Test
  void nothingMovesWhileATaskOfTheFirstAttemptHasNotEnded() {
    withoutTheLastTask();
    mapStageRuns.set(true);
    firstTasks.set(4);
    assertThat(moved(adopt(Step.SELECT, 10, 11, 12))).isEmpty();
    endOf("1");
    tracker.removeOutputsOnExecutor("1");
    assertThat(moved(adopt(10, 11, 12))).isEmpty();
    assertThat(places()).containsExactly("none", "none", "none", "none");
  }

  /** A later job starts a map stage whose outputs are all gone. */
  @Test
  void nothingMovesWhileAllTasksRunAgain() {
    threeOutputsOf(3);
    mapStageRuns.set(true);
    firstTasks.set(3);
    endOf("1");
    tracker.removeOutputsOnExecutor("1");
    assertThat(moved(adopt(10, 11, 12))).isEmpty();
  }

  private void withoutTheLastTask() {
    threeOutputsOf(4);
  }

  private void threeOutputsOf(int tasks) {
    tracker.unregisterShuffle(SHUFFLE);
    tracker.registerShuffle(SHUFFLE, tasks, 1);
    for (int map = 0; map < 3; map++) {
      tracker.registerMapOutput(SHUFFLE, map, status(DEAD, 10 + map));
    }
  }

  /** An executor may die between the end of its last map task and the event of the stage's end. */
  @Test
  void outputsMoveIfTheEndOfTheirStageWasNotHeardYet() {
    mapStageRuns.set(true);
    firstTasks.set(4);
    assertThat(moved(adopt(Step.SELECT, 10, 11, 12))).containsExactlyInAnyOrder(10, 11, 12);
    endOf("1");
    tracker.removeOutputsOnExecutor("1");
    assertThat(moved(adopt(10, 11, 12))).containsExactlyInAnyOrder(10, 11, 12);
    assertThat(places()).containsExactly("2", "2", "2", "3");
  }

  @Test
  void onlyOutputsThatReadersFindAtTheAdopterAreKept() {
    assertThat(moved(adopt(10, 11))).hasSize(2);
    tracker.registerMapOutput(SHUFFLE, 1, status(THIRD, 50));
    assertThat(moved(adopt(Step.KEEP, 10, 11, 12))).containsExactly(10);
    assertThat(places()).containsExactly("2", "3", "1", "3");
  }

  @Test
  void readersAreSentToCopiesOfOutputsThatAreGone() {
    tracker.unregisterMapOutput(SHUFFLE, 2, DEAD);
    tracker.registerMapOutput(SHUFFLE, 1, status(THIRD, 50));
    long epoch = tracker.getEpoch();
    moveToCopies(10L, 11L, 12L, 13L);
    await()
        .untilAsserted(
            () -> assertThat(places()).containsExactly("fallback", "3", "fallback", "3"));
    await().untilAsserted(() -> assertThat(tracker.getEpoch()).isGreaterThan(epoch));
  }

  /** An indeterminate stage runs again as a whole, so its removed outputs must not come back. */
  @Test
  void removedOutputsThatMustNotComeBackAreNotReadFromCopies() {
    restorable.set(false);
    tracker.unregisterMapOutput(SHUFFLE, 2, DEAD);
    moveToCopies(10L, 12L);
    await().untilAsserted(() -> assertThat(places()).containsExactly("fallback", "1", "none", "3"));
  }

  @Test
  void noCopyIsReadWhileTheMapStageRuns() {
    withoutTheLastTask();
    mapStageRuns.set(true);
    moveToCopies(10L, 11L, 12L);
    assertThat(moved(adopt(Step.SELECT, 10))).as("a later request").isEmpty();
    assertThat(places()).containsExactly("1", "1", "1", "none");
  }

  /** Each move of copies reports, and asks executors to look up again, only what is new. */
  @Test
  void outputsThatWereMovedToCopiesBeforeAreNotMovedAgain() {
    moveToCopies(10L);
    await().untilAsserted(() -> assertThat(places()).containsExactly("fallback", "1", "1", "3"));
    assertThat(moved(adopt(Step.SELECT, 11))).as("a later request").hasSize(1);
    long epoch = tracker.getEpoch();
    adoptions.move("3", Map.of(SHUFFLE, Map.of(10L, SurviveSettings.place("1"))));
    assertThat(moved(adopt(Step.SELECT, 11))).as("a later request").hasSize(1);
    assertThat(tracker.getEpoch()).isEqualTo(epoch);
  }

  private void moveToCopies(Long... maps) {
    BlockManagerId place = SurviveSettings.place("1");
    Map<Long, BlockManagerId> copies =
        Stream.of(maps).collect(Collectors.toMap(map -> map, map -> place));
    adoptions.move("1", Map.of(SHUFFLE, copies, 99, Map.of(1L, place)));
  }

  /** An adopter that has given up drops the outputs, so a late move must not send readers there. */
  @Test
  void aLaterRequestEndsAMoveThatHasNotBegun() throws Exception {
    CountDownLatch locked = new CountDownLatch(1);
    CountDownLatch release = new CountDownLatch(1);
    CompletableFuture<Void> spark =
        CompletableFuture.runAsync(
            () ->
                StatusLock.locked(
                    tracker.shuffleStatuses().apply(SHUFFLE),
                    () -> {
                      locked.countDown();
                      join(release);
                    }));
    join(locked);
    adoptions.answer(third(adopt(Step.SELECT, 10)));
    Adopt late = adopt(10, 11);
    assertThat(adoptions.answer(late).state()).isEqualTo(State.PENDING);
    Adopt keep = adopt(Step.KEEP, 10, 11);
    assertThat(adoptions.answer(keep).state()).isEqualTo(State.PENDING);
    release.countDown();
    spark.get(1, TimeUnit.MINUTES);
    assertThat(moved(keep)).isEmpty();
    assertThat(answer(late).refusal()).contains("later request");
    assertThat(places()).containsExactly("1", "1", "1", "3");
  }

  /** A request of another executor. */
  private static Adopt third(Adopt asked) {
    return new Adopt(
        "3",
        asked.number(),
        asked.step(),
        "host3",
        7000,
        null,
        asked.executorId(),
        asked.incarnation(),
        asked.outputs());
  }

  private static void join(CountDownLatch latch) {
    try {
      assertThat(latch.await(1, TimeUnit.MINUTES)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aRequestThatTheDriverDoesNotHaveIsUnknown() {
    assertThat(adoptions.answer(new AskAdoption("2", 1)).state()).isEqualTo(State.UNKNOWN);
    assertThat(moved(adopt(10))).hasSize(1);
    assertThat(adoptions.answer(new AskAdoption("2", 1)).state()).isEqualTo(State.DONE);
    assertThat(adoptions.answer(new AskAdoption("2", 2)).state()).isEqualTo(State.UNKNOWN);
  }

  @Test
  void mapStagesRunFromTheirSubmissionToTheirEnd() {
    RunningMapStages stages = new RunningMapStages();
    StageInfo first = stage(0);
    StageInfo second = stage(1);
    stages.onStageSubmitted(new SparkListenerStageSubmitted(first, null));
    assertThat(stages.isRunning(SHUFFLE)).isTrue();
    assertThat(stages.isRunning(8)).isFalse();
    assertThat(stages.firstTasks(SHUFFLE)).isEqualTo(1);
    assertThat(stages.firstTasks(8)).isZero();
    stages.onTaskEnd(ended(Success$.MODULE$));
    assertThat(stages.firstTasks(SHUFFLE)).isEqualTo(1);
    stages.onTaskEnd(ended(Resubmitted$.MODULE$));
    assertThat(stages.firstTasks(SHUFFLE)).as("repeats a task").isZero();
    stages.onStageSubmitted(new SparkListenerStageSubmitted(second, null));
    stages.onStageCompleted(new SparkListenerStageCompleted(first));
    assertThat(stages.isRunning(SHUFFLE)).as("its next attempt").isTrue();
    assertThat(stages.firstTasks(SHUFFLE)).as("not the first").isZero();
    stages.onStageCompleted(new SparkListenerStageCompleted(second));
    assertThat(stages.isRunning(SHUFFLE)).isFalse();
  }

  private static SparkListenerTaskEnd ended(TaskEndReason reason) {
    return new SparkListenerTaskEnd(5, 0, "ShuffleMapTask", reason, null, null, null);
  }

  private static StageInfo stage(int attempt) {
    return new StageInfo(
        5,
        attempt,
        "map",
        1,
        none(),
        none(),
        "",
        null,
        none(),
        Option.apply((Object) SHUFFLE),
        0,
        false,
        0);
  }

  private static <T> Seq<T> none() {
    return CollectionConverters.asScala(List.<T>of()).toSeq();
  }

  @Test
  void anAnswerThatWasLostIsGivenAgain() {
    assertThat(moved(adopt(10, 11))).containsExactlyInAnyOrder(10, 11);
    assertThat(moved(adopt(10, 11))).containsExactlyInAnyOrder(10, 11);
  }

  @Test
  void anotherAttemptIsNeverReplaced() {
    tracker.removeOutputsOnExecutor("1");
    tracker.registerMapOutput(SHUFFLE, 1, status(THIRD, 50));
    assertThat(moved(adopt(10, 11, 12))).containsExactlyInAnyOrder(10, 12);
    assertThat(places()).containsExactly("2", "3", "2", "3");
    assertThat(status(1).mapId()).isEqualTo(50);
  }

  @Test
  void anAttemptThatTheTrackerNeverHadIsNotMoved() {
    assertThat(moved(adopt(13, 60))).as("13 is another executor's").isEmpty();
    assertThat(places()).containsExactly("1", "1", "1", "3");
  }

  @Test
  void removedOutputsOfIndeterminateStagesStayRemoved() {
    restorable.set(false);
    tracker.unregisterMapOutput(SHUFFLE, 0, DEAD);
    assertThat(moved(adopt(10, 11))).as("the tracker still has 11").containsExactly(11);
    assertThat(places()).containsExactly("none", "2", "1", "3");
  }

  @Test
  void nothingRemovedComesBackAfterATaskMadeOtherRows() {
    if (!tracksMismatches()) {
      return; // Spark 4.0 knows no mismatches.
    }
    tracker.removeOutputsOnExecutor("1");
    tracker.registerShuffle(8, 1, 1);
    try {
      tracker.registerMapOutput(8, 0, MapStatuses.create(THIRD, new long[] {1}, 70, 1));
      tracker.registerMapOutput(8, 0, MapStatuses.create(THIRD, new long[] {1}, 71, 2));
      assertThat(moved(adopt(10))).isEmpty();
    } finally {
      tracker.unregisterShuffle(8);
    }
    assertThat(moved(adopt(10))).as("without the mismatch").containsExactly(10);
  }

  @Test
  void unknownIncarnationsAndEndedAdoptersAreRefused() {
    assertThat(answer(adopt(Step.MOVE, "ffffffff", SHUFFLE, 10)).refusal()).contains("incarnation");
    endOf("2");
    assertThat(answer(adopt(10)).state()).isEqualTo(State.ADOPTER_REMOVED);
    assertThat(places()).containsExactly("1", "1", "1", "3");
  }

  @Test
  void shufflesThatHaveEndedAreIgnored() {
    Adopt ended = adopt(Step.MOVE, "00000001", 99, 10);
    assertThat(answer(ended).outputs()).isEmpty();
  }

  private static boolean tracksMismatches() {
    return Arrays.stream(ShuffleStatus.class.getMethods())
        .anyMatch(method -> method.getName().equals("checksumMismatchIndices"));
  }

  private void endOf(String executor) {
    new ExecutorEndListener(state)
        .onExecutorRemoved(new SparkListenerExecutorRemoved(0, executor, "killed"));
  }

  private Adopt adopt(long... maps) {
    return adopt(Step.MOVE, maps);
  }

  private Adopt adopt(Step step, long... maps) {
    return adopt(step, "00000001", SHUFFLE, maps);
  }

  private Adopt adopt(Step step, String incarnation, int shuffle, long... maps) {
    return new Adopt(
        HEIR.executorId(),
        number.incrementAndGet(),
        step,
        HEIR.host(),
        HEIR.port(),
        null,
        DEAD.executorId(),
        incarnation,
        Map.of(shuffle, maps));
  }

  private List<Integer> moved(Adopt asked) {
    Adoption answer = answer(asked);
    assertThat(answer.refusal()).isNull();
    long[] maps = answer.outputs().getOrDefault(SHUFFLE, new long[0]);
    return Arrays.stream(maps).mapToObj(Math::toIntExact).toList();
  }

  private Adoption answer(Adopt asked) {
    AtomicReference<Adoption> last = new AtomicReference<>(adoptions.answer(asked));
    await()
        .until(
            () -> {
              if (last.get().state() == State.PENDING) {
                last.set(adoptions.answer(new AskAdoption(asked.adopter(), asked.number())));
              }
              return last.get().state() != State.PENDING;
            });
    return last.get();
  }

  private List<String> places() {
    return IntStream.range(0, 4)
        .mapToObj(this::status)
        .map(status -> status == null ? "none" : status.location().executorId())
        .toList();
  }

  private MapStatus status(int map) {
    return tracker.shuffleStatuses().apply(SHUFFLE).mapStatuses()[map];
  }

  private static MapStatus status(BlockManagerId place, long mapId) {
    return MapStatuses.create(place, new long[] {1}, mapId, 0);
  }

  private static BlockManagerId place(String executor) {
    return BlockManagerId.apply(executor, "host" + executor, 7000, Option.empty());
  }

  private static PeerAddress address(String id, String incarnation) {
    return new PeerAddress(id, incarnation, "host", 1, "/folder", "token", "boot", "1");
  }
}
