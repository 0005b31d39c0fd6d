package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.compat.MapStatuses;
import io.weft.spark.config.Activation;
import io.weft.spark.config.SurviveSettings;
import io.weft.spark.driver.DriverState.ExecutorEndListener;
import io.weft.spark.driver.OutputAdoptions.ShuffleStages;
import io.weft.spark.runtime.Messages.Copied;
import io.weft.spark.runtime.StoreFileSystem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.apache.spark.FetchFailed;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/** Copies on the driver, with Spark's own tracker and a local folder. */
class SurvivingOutputsTest {
  private static final int SHUFFLE = 7;
  private static final int MAPS = 4;
  private static final String EXECUTOR = "1";
  private static final BlockManagerId PLACE =
      BlockManagerId.apply(EXECUTOR, "host", 7000, Option.empty());

  private static SparkContext spark;

  @TempDir Path root;

  private final SparkConf conf = new SparkConf(false).set("spark.weft.adopt.enabled", "false");
  private final DriverState state = new DriverState(Activation.decide(conf), conf);
  private final OutputAdoptions places =
      new OutputAdoptions(
          state, new ShuffleStages(shuffle -> true, shuffle -> false, shuffle -> 0));
  private MapOutputTrackerMaster tracker;

  @BeforeAll
  static void startSpark() {
    spark =
        new SparkContext(
            new SparkConf(false)
                .setMaster("local[1]")
                .setAppName("copies")
                .set("spark.ui.enabled", "false")
                .set("spark.driver.host", "127.0.0.1"));
  }

  @AfterAll
  static void stopSpark() {
    spark.stop();
  }

  @BeforeEach
  void register() {
    state.announced(new PeerAddress(EXECUTOR, "00000001", "host", 1, "/f", "t", "boot", "1"));
    tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
    tracker.registerShuffle(SHUFFLE, MAPS, 1);
    for (int map = 0; map < MAPS; map++) {
      tracker.registerMapOutput(
          SHUFFLE, map, MapStatuses.create(PLACE, new long[] {1}, 10 + map, 0));
    }
  }

  @AfterEach
  void unregister() {
    if (tracker.containsShuffle(SHUFFLE)) {
      tracker.unregisterShuffle(SHUFFLE);
    }
    places.close();
  }

  private SurvivingOutputs start(Path path) {
    return start(path.toUri().toString());
  }

  private SurvivingOutputs start(String path) {
    conf.set("spark.weft.survive.path", path);
    return new SurvivingOutputs(state, places, conf, "app-1");
  }

  /** Each failure costs an attempt of a stage, so the other copies are not tried one by one. */
  @Test
  void copiesOfAShuffleAreNotUsedAfterOneWasNotRead() {
    try (SurvivingOutputs outputs = start(root)) {
      awaitFolder();
      copied(outputs, 10, 11);
      outputs.onTaskEnd(notRead(SHUFFLE));
      copied(outputs, 12);
      assertThat(outputs.isCopied(SHUFFLE, 12)).isFalse();
      outputs.onExecutorRemoved(new SparkListenerExecutorRemoved(0, EXECUTOR, "killed"));
      awaitEarlierMoves("1", "1", "1");
    }
  }

  /** Spark's own fetch iterator names the reader as the place of a copy that it could not read. */
  @Test
  void outputsWithAnUnreadCopyAreComputedAgain() {
    try (SurvivingOutputs outputs = start(root)) {
      awaitFolder();
      copied(outputs, 10, 11, 12);
      outputs.onExecutorRemoved(new SparkListenerExecutorRemoved(0, EXECUTOR, "killed"));
      await()
          .untilAsserted(
              () -> assertThat(at()).containsExactly("fallback", "fallback", "fallback", "1"));
      long epoch = tracker.getEpoch();
      outputs.notRead(SHUFFLE);
      await().untilAsserted(() -> assertThat(at()).containsExactly("none", "none", "none", "1"));
      await().untilAsserted(() -> assertThat(tracker.getEpoch()).isGreaterThan(epoch));
      assertThat(outputs.isCopied(SHUFFLE, 10)).isFalse();
    }
  }

  @Test
  void afterAFewFailuresNoCopyIsUsed() {
    try (SurvivingOutputs outputs = start(root)) {
      awaitFolder();
      copied(outputs, 10, 11, 12);
      for (int other = SHUFFLE + 1; other <= SHUFFLE + 3; other++) {
        tracker.registerShuffle(other, 1, 1);
        outputs.copied(new Copied(EXECUTOR, other, 1, true, false));
        outputs.onTaskEnd(notRead(other));
      }
      outputs.onExecutorRemoved(new SparkListenerExecutorRemoved(0, EXECUTOR, "killed"));
      awaitEarlierMoves("1", "1", "1");
    } finally {
      for (int other = SHUFFLE + 1; other <= SHUFFLE + 3; other++) {
        tracker.unregisterShuffle(other);
      }
    }
  }

  /** A short outage of the store is one failure. */
  @Test
  void eachShuffleCountsOnce() {
    tracker.registerShuffle(SHUFFLE + 1, 1, 1);
    try (SurvivingOutputs outputs = start(root)) {
      awaitFolder();
      copied(outputs, 10, 11, 12);
      for (int map = 0; map < 5; map++) {
        outputs.copied(new Copied(EXECUTOR, SHUFFLE + 1, map, true, false));
        outputs.onTaskEnd(notRead(SHUFFLE + 1));
      }
      outputs.onExecutorRemoved(new SparkListenerExecutorRemoved(0, EXECUTOR, "killed"));
      awaitEarlierMoves("fallback", "fallback", "fallback");
    } finally {
      tracker.unregisterShuffle(SHUFFLE + 1);
    }
  }

  /** Spark may ignore the failure of a task of an old attempt, or have forgotten before. */
  @Test
  void outputsThatSparkDidNotForgetAreReadFromTheirExecutor() {
    BlockManagerId other = BlockManagerId.apply("2", "host", 7001, Option.empty());
    state.announced(new PeerAddress("2", "00000002", "host", 1, "/f", "t", "boot", "1"));
    tracker.registerMapOutput(SHUFFLE, 3, MapStatuses.create(other, new long[] {1}, 13, 0));
    try (SurvivingOutputs outputs = start(root)) {
      awaitFolder();
      copied(outputs, 10, 11, 12, 13);
      outputs.onTaskEnd(notRead(PLACE, SHUFFLE));
      outputs.onTaskEnd(notRead(other, SHUFFLE));
      tracker.removeOutputsOnExecutor("2");
      await().untilAsserted(() -> assertThat(at()).containsExactly("1", "1", "1", "fallback"));
    }
  }

  /** The file of a copy that is written while its shuffle is deleted. */
  @Test
  void aCopyReportedDuringTheDeletionOfItsShuffleIsDeletedToo() throws Exception {
    conf.set("spark.master", "local-cluster[2,1,1024]");
    conf.set(StoreFileSystem.SETTING, StoreFileSystem.class.getName());
    CountDownLatch deletions = StoreFileSystem.blockDeletions();
    try (SurvivingOutputs outputs = start(StoreFileSystem.path(root))) {
      awaitFolder();
      outputs.copied(new Copied(EXECUTOR, SHUFFLE + 1, 1, true, false));
      StoreFileSystem.awaitBlockedDeletion();
      outputs.copied(new Copied(EXECUTOR, SHUFFLE + 1, 2, true, false));
      CountDownLatch again = StoreFileSystem.blockDeletions();
      deletions.countDown();
      StoreFileSystem.awaitBlockedDeletion();
      again.countDown();
    } finally {
      deletions.countDown();
      StoreFileSystem.blockDeletions().countDown();
    }
  }

  /** Moves are made one after the other, so those before this one are done. */
  private void awaitEarlierMoves(String... first) {
    places.move(EXECUTOR, Map.of(SHUFFLE, Map.of(13L, SurviveSettings.place(EXECUTOR))));
    await().untilAsserted(() -> assertThat(at()).endsWith("fallback"));
    assertThat(at()).startsWith(first);
  }

  @Test
  void outputsOfALeavingExecutorMoveTogether() {
    try (SurvivingOutputs outputs = start(root)) {
      awaitFolder();
      long epoch = tracker.getEpoch();
      for (int map = 10; map < 10 + MAPS; map++) {
        outputs.copied(new Copied(EXECUTOR, SHUFFLE, map, true, true));
      }
      await().untilAsserted(() -> assertThat(at()).containsOnly("fallback"));
      await().untilAsserted(() -> assertThat(tracker.getEpoch()).isEqualTo(epoch + 1));
    }
  }

  /** Otherwise Spark computes the outputs again before the slow store has answered. */
  @Test
  void aSlowStoreDoesNotDelayReaders() throws Exception {
    conf.set("spark.weft.adopt.enabled", "true").set("spark.master", "local-cluster[2,1,1024]");
    conf.set(StoreFileSystem.SETTING, StoreFileSystem.class.getName());
    CountDownLatch deletions = StoreFileSystem.blockDeletions();
    try (SurvivingOutputs outputs = start(StoreFileSystem.path(root))) {
      awaitFolder();
      copied(outputs, 10, 11, 12);
      outputs.copied(new Copied(EXECUTOR, SHUFFLE + 1, 1, true, false));
      StoreFileSystem.awaitBlockedDeletion();
      SparkListenerExecutorRemoved end = new SparkListenerExecutorRemoved(0, EXECUTOR, "killed");
      new ExecutorEndListener(state).onExecutorRemoved(end);
      outputs.onExecutorRemoved(end);
      await()
          .untilAsserted(
              () -> assertThat(at()).containsExactly("fallback", "fallback", "fallback", "1"));
      deletions.countDown();
    } finally {
      deletions.countDown();
    }
  }

  /** Spark notices the death of an executor that cannot be reached after minutes. */
  @Test
  void outputsAreReadFromCopiesAfterAFetchHasFailed() {
    try (SurvivingOutputs outputs = start(root)) {
      awaitFolder();
      copied(outputs, 10, 11, 12);
      outputs.onTaskEnd(notRead(PLACE, SHUFFLE));
      tracker.unregisterMapOutput(SHUFFLE, 0, PLACE);
      tracker.removeOutputsOnExecutor(EXECUTOR);
      await()
          .untilAsserted(
              () -> assertThat(at()).containsExactly("fallback", "fallback", "fallback", "none"));
    }
  }

  /** Each writer has a file of its own, and readers must open a complete one. */
  @Test
  void theFirstWriterToReportIsRead() {
    try (SurvivingOutputs outputs = start(root)) {
      awaitFolder();
      outputs.copied(new Copied("2", SHUFFLE, 10, true, false));
      assertThat(outputs.isCopied(SHUFFLE, 10)).isTrue();
      assertThat(outputs.isCopied(SHUFFLE, 11)).isFalse();
      assertThat(outputs.isCopied(SHUFFLE + 1, 10)).isFalse();
      copied(outputs, 10);
      outputs.copied(new Copied(EXECUTOR, SHUFFLE, 11, true, true));
      outputs.copied(new Copied(EXECUTOR, SHUFFLE, 10, true, true));
      await()
          .untilAsserted(() -> assertThat(at()).containsExactly("fallback", "fallback", "1", "1"));
      assertThat(statuses().map(status -> status.location().topologyInfo().getOrElse(() -> "none")))
          .containsExactly("2", EXECUTOR, "none", "none");
    }
  }

  /** Such a copy may have been forgotten since the executor asked. It has no file of its own. */
  @Test
  void aLeavingExecutorWithoutItsOwnCopyIsNoWriter() {
    try (SurvivingOutputs outputs = start(root)) {
      awaitFolder();
      outputs.copied(new Copied("2", SHUFFLE, 10, true, false));
      outputs.copied(new Copied(EXECUTOR, SHUFFLE, 11, false, true));
      outputs.copied(new Copied(EXECUTOR, SHUFFLE, 10, false, true));
      await().untilAsserted(() -> assertThat(at()).containsExactly("fallback", "1", "1", "1"));
      assertThat(outputs.isCopied(SHUFFLE, 11)).isFalse();
      assertThat(statuses().findFirst().orElseThrow().location().topologyInfo().get())
          .isEqualTo("2");
    }
  }

  /** A place that is not ready yet, such as a file system that still starts. */
  @Test
  void theFolderIsCreatedLaterIfItCannotBeAtTheStart() throws IOException {
    Path path = Files.createFile(root.resolve("path"));
    try (SurvivingOutputs outputs = start(path)) {
      copied(outputs, 10);
      Files.delete(path);
      awaitFolder();
      copied(outputs, 11);
      outputs.onExecutorRemoved(new SparkListenerExecutorRemoved(0, EXECUTOR, "killed"));
      await().untilAsserted(() -> assertThat(at()).containsExactly("1", "fallback", "1", "1"));
    }
    assertThat(marks()).as("after the end").isEmpty();
  }

  private static void copied(SurvivingOutputs outputs, long... maps) {
    for (long map : maps) {
      outputs.copied(new Copied(EXECUTOR, SHUFFLE, map, true, false));
    }
  }

  private static SparkListenerTaskEnd notRead(int shuffle) {
    return notRead(SurviveSettings.place(EXECUTOR), shuffle);
  }

  private static SparkListenerTaskEnd notRead(BlockManagerId place, int shuffle) {
    FetchFailed failed = new FetchFailed(place, shuffle, 10, 0, 0, "damaged");
    return new SparkListenerTaskEnd(4, 0, "ResultTask", failed, null, null, null);
  }

  /** The thread goes on soon after it has written the mark. */
  private void awaitFolder() {
    await()
        .until(
            () ->
                !marks().isEmpty()
                    && Thread.getAllStackTraces().keySet().stream()
                        .filter(thread -> thread.getName().equals("weft-copies"))
                        .allMatch(thread -> thread.getState() == Thread.State.TIMED_WAITING));
  }

  private List<Path> marks() throws IOException {
    try (Stream<Path> all = Files.walk(root)) {
      return all.filter(file -> file.endsWith("alive")).toList();
    }
  }

  private List<String> at() {
    return statuses()
        .map(status -> status == null ? "none" : status.location().executorId())
        .toList();
  }

  private Stream<MapStatus> statuses() {
    return Stream.of(tracker.shuffleStatuses().apply(SHUFFLE).mapStatuses());
  }
}
