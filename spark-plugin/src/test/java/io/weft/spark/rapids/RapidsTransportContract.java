package io.weft.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.nvidia.spark.rapids.shuffle.RapidsShuffleClient;
import io.weft.device.Deadline;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.apache.spark.storage.BlockManagerId;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/** The contract of the transport for every data path, between executors of one process. */
abstract class RapidsTransportContract {
  private static final Duration DEADLINE = Duration.ofSeconds(60);
  private static final Duration IDLE = Duration.ofMinutes(5);
  private static final int MAX_BYTES = 5 * TestExecutor.BOUNCE_BYTES;

  @TempDir Path folder;

  private final List<TestExecutor> executors = new ArrayList<>();

  abstract RapidsGpuPath way();

  @BeforeAll
  static void needsDoubles() {
    Doubles.assume();
  }

  private TestExecutor start(int executor, Map<String, String> settings) {
    return start(executor, settings, DEADLINE, IDLE);
  }

  private TestExecutor start(
      int executor, Map<String, String> settings, Duration deadline, Duration idle) {
    TestExecutor started = new TestExecutor(folder, executor, way(), settings, deadline, idle);
    executors.add(started);
    return started;
  }

  private void closeAll() {
    executors.forEach(TestExecutor::close);
    executors.clear();
  }

  @AfterEach
  void close() {
    closeAll();
    Doubles.assertClean();
  }

  /** Adds tables of many sizes and returns their ids. */
  private static Map<Integer, Integer> tables(
      TestExecutor server, int first, int count, Random to) {
    Map<Integer, Integer> sizes = new LinkedHashMap<>();
    for (int id = first; id < first + count; id++) {
      int bytes =
          switch (to.nextInt(4)) {
            case 0 -> to.nextInt(3);
            case 1 -> to.nextInt(2000);
            case 2 -> TestExecutor.BOUNCE_BYTES * to.nextInt(3);
            default -> to.nextInt(MAX_BYTES);
          };
      server.add(id, bytes);
      sizes.put(id, bytes);
    }
    return sizes;
  }

  private static FetchTask fetch(TestExecutor from, BlockManagerId peer, List<Integer> ids) {
    FetchTask task = new FetchTask();
    from.client(peer).fetch(ids, task);
    return task;
  }

  private static void check(Map<Integer, byte[]> arrived, Map<Integer, Integer> sizes) {
    assertThat(arrived.keySet()).containsExactlyInAnyOrderElementsOf(sizes.keySet());
    arrived.forEach(
        (id, content) ->
            assertThat(content)
                .as("table %d", id)
                .isEqualTo(TestExecutor.content(id, sizes.get(id))));
  }

  private static void awaitNothingInflight(TestExecutor reader) {
    Awaitility.await("no received table in use")
        .atMost(DEADLINE)
        .until(() -> reader.transport().inflightBytes() == 0);
  }

  @Test
  void tablesOfEverySizeBothWaysAtTheSameTime() throws Exception {
    List<TestExecutor> all = List.of(start(0, Map.of()), start(1, Map.of()), start(2, Map.of()));
    Random random = new Random(7);
    List<FetchTask> tasks = new ArrayList<>();
    List<Map<Integer, Integer>> expected = new ArrayList<>();
    for (int i = 0; i < 30; i++) {
      int reader = random.nextInt(3);
      TestExecutor server = all.get((reader + 1 + random.nextInt(2)) % 3);
      Map<Integer, Integer> sizes = tables(server, 1000 * i, 1 + random.nextInt(60), random);
      expected.add(sizes);
      tasks.add(fetch(all.get(reader), server.id(), new ArrayList<>(sizes.keySet())));
    }
    for (int i = 0; i < tasks.size(); i++) {
      check(tasks.get(i).await(), expected.get(i));
    }
    for (TestExecutor each : all) {
      awaitNothingInflight(each);
    }
  }

  /** Which blocks have memory at the same time is chance, so the tasks are repeated. */
  @Test
  void blocksOfTasksThatFetchAtTheSameTimeMoveTogether() throws Exception {
    TestExecutor reader = start(0, Map.of());
    TestExecutor server = start(1, Map.of());
    Map<Integer, Integer> sizes = tables(server, 0, 20, new Random(5));
    Deadline deadline = Deadline.after(DEADLINE);
    while (server.mostSent() < 2 && !deadline.expired()) {
      List<FetchTask> tasks =
          IntStream.range(0, 8)
              .mapToObj(i -> fetch(reader, server.id(), new ArrayList<>(sizes.keySet())))
              .toList();
      for (FetchTask task : tasks) {
        check(task.await(), sizes);
      }
    }
    assertThat(server.mostSent()).as("the most blocks of a group").isGreaterThan(1);
  }

  /** The budget is below one table, and there is one bounce buffer only. */
  @Test
  void littleMemoryIsEnough() throws Exception {
    Map<String, String> little =
        Map.of(
            "spark.rapids.shuffle.transport.maxReceiveInflightBytes", "1000",
            "spark.rapids.shuffle.ucx.bounceBuffers.device.count", "1");
    TestExecutor reader = start(0, little);
    TestExecutor server = start(1, little);
    Map<Integer, Integer> sizes = tables(server, 0, 40, new Random(3));
    check(fetch(reader, server.id(), new ArrayList<>(sizes.keySet())).await(), sizes);
  }

  /** Metadata larger than the pool's buffers. */
  @Test
  void thousandsOfTinyTablesInOneRequest() throws Exception {
    TestExecutor reader = start(0, Map.of());
    TestExecutor server = start(1, Map.of());
    Map<Integer, Integer> sizes = new LinkedHashMap<>();
    IntStream.range(0, 3000).forEach(id -> sizes.put(id, 1 + id % 7));
    sizes.forEach(server::add);
    check(fetch(reader, server.id(), new ArrayList<>(sizes.keySet())).await(), sizes);
  }

  @Test
  void aSlowReaderDelaysOnlyItself() throws Exception {
    TestExecutor reader = start(0, Map.of());
    TestExecutor other = start(1, Map.of());
    TestExecutor server = start(2, Map.of());
    Map<Integer, Integer> sizes = new LinkedHashMap<>();
    IntStream.range(0, 20).forEach(id -> sizes.put(id, MAX_BYTES));
    sizes.forEach(server::add);
    CountDownLatch goOn = new CountDownLatch(1);
    FetchTask slow = new FetchTask(() -> awaitQuietly(goOn));
    reader.client(server.id()).fetch(new ArrayList<>(sizes.keySet()), slow);
    check(fetch(other, server.id(), new ArrayList<>(sizes.keySet())).await(), sizes);
    assertThat(slow.size()).isZero();
    goOn.countDown();
    check(slow.await(), sizes);
  }

  private static void awaitQuietly(CountDownLatch latch) {
    try {
      assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void aTaskThatIsCancelledIsForgotten() throws Exception {
    Map<String, String> little =
        Map.of("spark.rapids.shuffle.transport.maxReceiveInflightBytes", "1000");
    TestExecutor reader = start(0, little);
    TestExecutor server = start(1, Map.of());
    Map<Integer, Integer> sizes = new LinkedHashMap<>();
    IntStream.range(0, 20).forEach(id -> sizes.put(id, MAX_BYTES));
    sizes.forEach(server::add);
    CountDownLatch first = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    FetchTask cancelled =
        new FetchTask(
            () -> {
              first.countDown();
              awaitQuietly(goOn);
            });
    RapidsShuffleClient client = reader.client(server.id());
    client.fetch(new ArrayList<>(sizes.keySet()), cancelled);
    assertThat(first.await(60, TimeUnit.SECONDS)).isTrue();
    client.forget(cancelled);
    goOn.countDown();
    check(fetch(reader, server.id(), new ArrayList<>(sizes.keySet())).await(), sizes);
    awaitNothingInflight(reader);
    assertThat(cancelled.size()).isLessThan(20);
  }

  /** All fetches from a server that ends fail at once. */
  @Test
  void aServerThatEndsEndsEveryFetchWithItsName() throws Exception {
    TestExecutor reader = start(0, Map.of());
    TestExecutor server = start(1, Map.of());
    TestExecutor alive = start(2, Map.of());
    Map<Integer, Integer> sizes = new LinkedHashMap<>();
    IntStream.range(0, 50).forEach(id -> sizes.put(id, MAX_BYTES));
    sizes.forEach(server::add);
    sizes.forEach(alive::add);
    CountDownLatch some = new CountDownLatch(3);
    FetchTask task = new FetchTask(some::countDown);
    RapidsShuffleClient client = reader.client(server.id());
    client.fetch(new ArrayList<>(sizes.keySet()), task);
    assertThat(some.await(60, TimeUnit.SECONDS)).isTrue();
    BlockManagerId gone = server.id();
    executors.remove(server);
    long start = System.nanoTime();
    server.close();
    assertThat(task.awaitError()).containsAnyOf("executor 1", "Connection to 1");
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(DEADLINE);
    assertThatThrownBy(() -> reader.client(gone))
        .isInstanceOf(UncheckedIOException.class)
        .hasMessageContaining("executor 0 cannot connect to executor 1");
    check(fetch(reader, alive.id(), new ArrayList<>(sizes.keySet())).await(), sizes);
    awaitNothingInflight(reader);
  }

  @Test
  void aMissingTableFailsAfterTheDeadlineAndTheOthersGoOn() throws Exception {
    // Long enough for the other table, also on a busy machine.
    TestExecutor reader = start(0, Map.of(), Duration.ofSeconds(6), IDLE);
    TestExecutor server = start(1, Map.of());
    server.add(1, 100);
    FetchTask missing = fetch(reader, server.id(), List.of(77));
    assertThat(missing.awaitError())
        .contains("request of metadata of executor 0 to executor 1")
        .contains("no answer came within");
    check(fetch(reader, server.id(), List.of(1)).await(), Map.of(1, 100));
  }

  @Test
  void executorsWithBounceBuffersOfDifferentSizesAreToldSo() throws Exception {
    TestExecutor reader = start(0, Map.of("spark.rapids.shuffle.ucx.bounceBuffers.size", "1024"));
    TestExecutor server = start(1, Map.of());
    server.add(1, TestExecutor.BOUNCE_BYTES);
    assertThat(fetch(reader, server.id(), List.of(1)).awaitError())
        .contains("spark.rapids.shuffle.ucx.bounceBuffers");
  }

  /** A later transfer creates a new communicator after an idle one was given up. */
  @Test
  void idleCommunicatorsAreGivenUpAndCreatedAgain() throws Exception {
    Duration idle = Duration.ofMillis(300);
    TestExecutor reader = start(0, Map.of(), DEADLINE, idle);
    TestExecutor server = start(1, Map.of(), DEADLINE, idle);
    server.add(1, 5000);
    for (int i = 0; i < 3; i++) {
      check(fetch(reader, server.id(), List.of(1)).await(), Map.of(1, 5000));
      ClientLink link = (ClientLink) reader.transport().connect(server.id());
      long epoch = i + 1;
      Awaitility.await().atMost(DEADLINE).until(() -> link.lane().isOver(epoch));
    }
  }

  @Test
  void idsOfOthersAndOfItselfAreRefused() {
    TestExecutor reader = start(0, Map.of());
    TestExecutor other = start(1, Map.of());
    assertThatThrownBy(() -> reader.client(reader.id()))
        .hasMessageContaining("executor 0 fetches from itself");
    BlockManagerId without = BlockManagerId.apply("1", "127.0.0.1", 1, Option.empty());
    assertThatThrownBy(() -> reader.client(without))
        .hasMessageContaining("has no port of a shuffle transport");
    BlockManagerId driver =
        BlockManagerId.apply("driver", "127.0.0.1", 1, Option.apply("rapids=1"));
    assertThatThrownBy(() -> reader.client(driver)).hasMessageContaining("driver");
    BlockManagerId moved = BlockManagerId.apply("5", "127.0.0.1", 1, other.id().topologyInfo());
    assertThatThrownBy(() -> reader.client(moved))
        .hasMessageContaining("executor 0 expected executor 5 and reached executor 1");
  }
}
