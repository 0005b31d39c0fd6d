package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.compat.MapStatuses;
import io.weft.spark.config.Activation;
import io.weft.spark.driver.DriverState.ExecutorEndListener;
import io.weft.spark.runtime.Messages.Adopt;
import io.weft.spark.runtime.Messages.Adoption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.ShuffleStatus;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import scala.Option;

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
  private final OutputAdoptions adoptions = new OutputAdoptions(state, shuffle -> restorable.get());
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
    Adopt other = new Adopt("2", "h", 1, null, "1", "ffffffff", Map.of(SHUFFLE, new long[] {10}));
    assertThat(answer(other).refusal()).contains("incarnation");
    endOf("2");
    assertThat(answer(adopt(10)).refusal()).contains("removed the executor that adopts");
    assertThat(places()).containsExactly("1", "1", "1", "3");
  }

  @Test
  void shufflesThatHaveEndedAreIgnored() {
    Adopt asked = adopt(10);
    Adopt ended =
        new Adopt("2", "h", 1, null, "1", asked.incarnation(), Map.of(99, new long[] {10}));
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

  private static Adopt adopt(long... maps) {
    return new Adopt(
        HEIR.executorId(),
        HEIR.host(),
        HEIR.port(),
        null,
        DEAD.executorId(),
        "00000001",
        Map.of(SHUFFLE, maps));
  }

  private List<Integer> moved(Adopt asked) {
    Adoption answer = answer(asked);
    assertThat(answer.refusal()).isNull();
    long[] maps = answer.outputs().getOrDefault(SHUFFLE, new long[0]);
    return Arrays.stream(maps).mapToObj(Math::toIntExact).toList();
  }

  private Adoption answer(Adopt asked) {
    AtomicReference<Adoption> last = new AtomicReference<>(Adoption.PENDING);
    await()
        .until(
            () -> {
              last.set(adoptions.answer(asked));
              return !last.get().isPending();
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
