package io.weft.shuffle;

import static io.weft.shuffle.peer.ExchangeCounter.OUTPUTS_ADOPTED;
import static io.weft.shuffle.peer.ExchangeCounter.REMOTE_BLOCKS;
import static io.weft.shuffle.peer.ExchangeCounter.SAME_HOST_BLOCKS;
import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.AdoptionAgreement.AdopterRemovedException;
import io.weft.shuffle.AdoptionAgreement.Step;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.TransportMode;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.DeadFolder;
import io.weft.shuffle.store.FolderAdoption.Verify;
import io.weft.shuffle.store.Leftover;
import io.weft.support.Deletion;
import io.weft.support.ExecutorProcess;
import io.weft.support.ExecutorProcess.Blocks;
import io.weft.support.TestBlocks;
import io.weft.support.TestCluster;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** An executor's process is killed, and others on the host adopt its map outputs. */
class AdoptionTest {
  private static final int MAPS = 60;
  private static final int PARTITIONS = 4;
  private static final int CHUNKS = MAPS * PARTITIONS * 3;

  /** Its name is the one before the dead executor's, so it watches that one. */
  private static final String HEIR = "older";

  private static final BlockKey NEEDED = new BlockKey(1, 7);

  @TempDir Path folder;

  /** The outputs of each request to the driver. */
  private final List<Set<BlockKey>> asked = new CopyOnWriteArrayList<>();

  private TestCluster cluster;
  private ExecutorProcess other;

  @BeforeEach
  void start() throws IOException {
    cluster = new TestCluster(folder).adopting(Verify.WHOLE, true);
  }

  @AfterEach
  void stop() throws Exception {
    other.close();
    cluster.close();
  }

  private void startOther(Blocks blocks) throws IOException {
    other = new ExecutorProcess(folder, "other", TransportMode.AUTO, blocks);
    cluster.announce(other.address());
    other.order("write 1 " + MAPS + " " + PARTITIONS);
  }

  @ParameterizedTest
  @EnumSource(
      value = Blocks.class,
      names = {"IN_MEMORY", "ON_DISK", "ENCRYPTED"})
  void adoptedOutputsAreReadInPlaceAndOverTheNetwork(Blocks blocks) throws Exception {
    if (blocks == Blocks.ENCRYPTED) {
      cluster.encrypted();
    }
    startOther(blocks);
    ExecutorExchange heir = cluster.mode(TransportMode.AUTO).open(HEIR);
    ExecutorExchange neighbour = cluster.mode(TransportMode.SHM).open("neighbour");
    ExecutorExchange distant = cluster.mode(TransportMode.TCP).open("distant");
    long before = heir.statistics().arena().usedBytes();
    other.kill();
    heir.adoptSiblings(this::all);
    awaitAdopted(heir, MAPS);
    assertThat(heir.statistics().arena().usedBytes()).isGreaterThan(before + 1000L * CHUNKS);
    assertThat(asked).containsExactly(keys(MAPS));
    for (ExecutorExchange reader : List.of(heir, neighbour, distant)) {
      assertThat(readAll(reader, requests(HEIR)))
          .containsExactlyInAnyOrderElementsOf(
              expected(1, 0, MAPS, 0, PARTITIONS, ExecutorProcess::size));
    }
    assertThat(neighbour.statistics().get(SAME_HOST_BLOCKS)).isEqualTo(MAPS * PARTITIONS);
    assertThat(distant.statistics().get(REMOTE_BLOCKS)).isEqualTo(MAPS * PARTITIONS);
    cluster.removeShuffle(1);
    TestCluster.assertNothingHeld(heir);
    awaitGone(Path.of(other.address().folder()));
    assertThat(heir.statistics().arena().memory().reservedBytes())
        .as("memory of adopted segments, which go with their outputs")
        .isZero();
  }

  @Test
  void aReaderOfTheDeadExecutorContinues() throws Exception {
    startOther(Blocks.IN_MEMORY);
    ExecutorExchange heir = cluster.open("heir");
    ExecutorExchange reader = cluster.open("reader");
    try (ChunkReader chunks = reader.read(requests("other"), FetchListener.NONE)) {
      assertThat(chunks.next()).isTrue();
      other.kill();
      heir.adoptSiblings(this::all);
      awaitAdopted(heir, MAPS);
      heir.removeShuffle(1);
      // If the heir used the memory again, this would overwrite blocks that are being read.
      TestBlocks.write(heir, new BlockKey(2, 0), 400, ExecutorProcess::size);
      for (int chunk = 1; chunk < CHUNKS; chunk++) {
        assertThat(chunks.next()).isTrue();
        TestBlocks.assertContents(
            chunks.address(),
            chunks.length(),
            chunks.request().key(),
            chunks.partition(),
            chunks.rows() - 1);
      }
    }
  }

  @Test
  void oneOfManyAdopts() throws Exception {
    startOther(Blocks.IN_MEMORY);
    List<ExecutorExchange> heirs =
        List.of(cluster.open("1"), cluster.open("2"), cluster.open("3"), cluster.open("4"));
    heirs.forEach(heir -> heir.adoptSiblings(this::all));
    other.kill();
    await().untilAsserted(() -> assertThat(asked).isNotEmpty());
    awaitGone(Path.of(other.address().folder()));
    assertThat(asked).containsExactly(keys(MAPS));
    assertThat(heirs.stream().mapToInt(heir -> heir.outputs().size()).sum()).isEqualTo(MAPS);
  }

  @Test
  void aReplacementAdoptsWhatWasLeftBeforeItsStart() throws Exception {
    startOther(Blocks.IN_MEMORY);
    other.kill();
    ExecutorExchange replacement = cluster.open("replacement");
    replacement.adoptSiblings(this::all);
    awaitAdopted(replacement, MAPS);
    assertThat(readAll(replacement, requests("replacement"))).hasSize(CHUNKS);
  }

  @Test
  void anExecutorThatIsOnlyStoppedIsNotAdopted() throws Exception {
    startOther(Blocks.IN_MEMORY);
    Path living = Path.of(other.address().folder());
    other.signal("STOP");
    assertThat(DeadFolder.seize(living)).isEmpty();
    other.signal("CONT");
    assertThat(other.order("write 2 1 1")).isNotEmpty();
    other.kill();
    try (DeadFolder dead = DeadFolder.seize(living).orElseThrow()) {
      assertThat(dead.executorId()).isEqualTo("other");
      assertThat(dead.incarnation()).isEqualTo(other.address().incarnation());
      assertThat(DeadFolder.seize(living)).as("a second adopter").isEmpty();
    }
    assertThat(Leftover.sweep(cluster.root())).hasSize(1);
  }

  /** Only what the driver selects is mapped, and what it does not move is freed. */
  @Test
  void whatTheDriverDoesNotNeedIsFreed() throws Exception {
    startOther(Blocks.IN_MEMORY);
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    Set<BlockKey> some = Set.of(NEEDED, new BlockKey(1, 8));
    long left = segments(Path.of(other.address().folder())).size() * TestCluster.SEGMENT_BYTES;
    heir.adoptSiblings(
        (step, id, incarnation, outputs) -> step == Step.MOVE ? Set.of(NEEDED) : some);
    awaitAdopted(heir, 1);
    assertThat(heir.outputs()).containsExactly(NEEDED);
    assertThat(heir.statistics().arena().usedBytes()).isLessThan(100_000);
    assertThat(heir.arena().statistics().memory().reservedBytes())
        .as("memory of the segments of what is needed")
        .isLessThanOrEqualTo(2 * TestCluster.SEGMENT_BYTES)
        .isLessThan(left);
    assertThat(readAll(heir, List.of(request("heir", NEEDED, 0, PARTITIONS, 1)))).hasSize(12);
  }

  @Test
  void nothingIsKeptIfTheDriverRefuses() throws Exception {
    startOther(Blocks.IN_MEMORY);
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    heir.adoptSiblings(
        (step, id, incarnation, outputs) -> {
          asked.add(Set.copyOf(outputs));
          throw new IOException("the test refuses");
        });
    awaitGone(Path.of(other.address().folder()));
    assertThat(asked).hasSize(1);
    assertThat(heir.outputs()).isEmpty();
    TestCluster.assertNothingHeld(heir);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void afterALostAnswerOnlyWhatReadersFindHereStays(boolean unchecked) throws Exception {
    startOther(Blocks.IN_MEMORY);
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    heir.adoptSiblings(
        (step, id, incarnation, outputs) -> {
          if (step == Step.MOVE && unchecked) {
            throw new IllegalStateException("the test fails");
          } else if (step == Step.MOVE) {
            throw new IOException("the test loses the answer");
          }
          return step == Step.KEEP ? Set.of(NEEDED) : Set.copyOf(outputs);
        });
    awaitAdopted(heir, 1);
    assertThat(heir.outputs()).containsExactly(NEEDED);
    awaitGone(Path.of(other.address().folder()));
  }

  /** The driver may have sent readers here. One that found nothing would do much harm. */
  @Test
  void allStaysIfTheDriverCannotBeReachedAfterAMove() throws Exception {
    startOther(Blocks.IN_MEMORY);
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    heir.adoptSiblings(
        (step, id, incarnation, outputs) -> {
          if (step != Step.SELECT) {
            throw new IOException("the test cuts the driver off");
          }
          return Set.copyOf(outputs);
        });
    awaitGone(Path.of(other.address().folder()));
    assertThat(heir.outputs()).hasSize(MAPS);
    assertThat(readAll(heir, requests("heir"))).hasSize(CHUNKS);
  }

  /** The driver removes it before the last one of these steps. */
  @ParameterizedTest
  @EnumSource(Step.class)
  void anExecutorThatTheDriverHasRemovedLeavesTheFolderToOthers(Step last) throws Exception {
    startOther(Blocks.IN_MEMORY);
    Path left = Path.of(other.address().folder());
    ExecutorExchange fenced = cluster.open("nearest");
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    AtomicInteger refusals = new AtomicInteger();
    fenced.adoptSiblings(
        (step, id, incarnation, outputs) -> {
          if (step == last) {
            refusals.incrementAndGet();
            throw new AdopterRemovedException();
          }
          if (step == Step.MOVE) {
            throw new IOException("no answer, as the test asked");
          }
          return Set.copyOf(outputs);
        });
    await().untilAsserted(() -> assertThat(refusals).hasValue(1));
    await().until(() -> isFree(left));
    assertThat(DeadFolder.isSettled(left)).isFalse();
    assertThat(fenced.outputs()).isEmpty();
    heir.adoptSiblings(this::all);
    awaitAdopted(heir, MAPS);
    assertThat(refusals).hasValue(1);
  }

  private static boolean isFree(Path left) throws IOException {
    Optional<DeadFolder> seized = DeadFolder.seize(left);
    if (seized.isPresent()) {
      seized.get().close();
    }
    return seized.isPresent();
  }

  /** The executor between them lives, but does not watch, as one that is stopped. */
  @Test
  void anExecutorBehindAStoppedWatcherIsAdopted() throws Exception {
    startOther(Blocks.IN_MEMORY);
    ExecutorExchange heir = cluster.open("heir");
    ExecutorExchange stopped = cluster.open("nearest");
    heir.adoptSiblings(this::all);
    other.kill();
    awaitAdopted(heir, MAPS);
    assertThat(stopped.outputs()).isEmpty();
  }

  @Test
  void twoOfThreeThatDieAtOnceAreAdopted() throws Exception {
    startOther(Blocks.IN_MEMORY);
    ExecutorExchange heir = cluster.open("heir");
    try (ExecutorProcess second =
        new ExecutorProcess(folder, "second", TransportMode.AUTO, Blocks.IN_MEMORY)) {
      second.order("write 2 5 2");
      heir.adoptSiblings((step, id, incarnation, outputs) -> Set.copyOf(outputs));
      second.kill();
      other.kill();
      awaitAdopted(heir, MAPS + 5);
      awaitGone(Path.of(other.address().folder()));
      awaitGone(Path.of(second.address().folder()));
    }
  }

  @Test
  void aFolderWithoutItsTokenIsRemoved() throws Exception {
    startOther(Blocks.IN_MEMORY);
    Path left = Path.of(other.address().folder());
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    Files.delete(left.resolve("token"));
    heir.adoptSiblings(this::all);
    awaitGone(left);
    assertThat(heir.outputs()).isEmpty();
  }

  @Test
  void aFolderThatCannotBeSettledIsTriedAgainAndAdoptedOnce() throws Exception {
    startOther(Blocks.IN_MEMORY);
    Path left = Path.of(other.address().folder());
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    Files.delete(left.resolve("adoptable"));
    Path obstacle = Files.createDirectories(left.resolve("adoptable").resolve("obstacle"));
    heir.adoptSiblings(this::all);
    awaitAdopted(heir, MAPS);
    assertThat(left).exists();
    Files.delete(obstacle);
    awaitGone(left);
    assertThat(asked).containsExactly(keys(MAPS));
  }

  @Test
  void aFolderThatCannotBeReadDoesNotBlockTheOnesBehindIt() throws Exception {
    startOther(Blocks.IN_MEMORY);
    ExecutorExchange heir = cluster.open("heir");
    Path broken = Path.of(other.address().folder()).resolveSibling("middle-00000000");
    Files.createDirectories(broken.resolve("alive"));
    Files.createFile(broken.resolve("adoptable"));
    try {
      other.kill();
      heir.adoptSiblings(this::all);
      awaitAdopted(heir, MAPS);
    } finally {
      Deletion.delete(broken);
    }
  }

  @Test
  void noMoreThanAWholeBudgetIsAdopted() throws Exception {
    startOther(Blocks.IN_MEMORY);
    ExecutorExchange heir = cluster.memory(TestCluster.SEGMENT_BYTES, 256 << 20).open("heir");
    other.kill();
    assertThat(segments(Path.of(other.address().folder()))).hasSizeGreaterThan(1);
    heir.adoptSiblings(this::all);
    awaitGone(Path.of(other.address().folder()));
    assertThat(heir.outputs()).isNotEmpty().hasSizeLessThan(MAPS);
    assertThat(heir.arena().statistics().memory().reservedBytes())
        .isEqualTo(TestCluster.SEGMENT_BYTES);
    assertThat(heir.statistics().get(OUTPUTS_ADOPTED)).isEqualTo(heir.outputs().size());
  }

  @Test
  void withoutAdoptionThereIsNoFileAndNoThread() throws Exception {
    startOther(Blocks.IN_MEMORY);
    try (TestCluster without = new TestCluster(folder.resolve("without"))) {
      ExecutorExchange plain = without.open("plain");
      plain.adoptSiblings(this::all);
      assertThat(Path.of(plain.address().folder()).resolve("adoptable")).doesNotExist();
      assertThat(Thread.getAllStackTraces().keySet())
          .noneMatch(thread -> thread.getName().equals("weft-adopter"));
    }
  }

  @Test
  void damagedOutputsAreLeftOut() throws Exception {
    startOther(Blocks.IN_MEMORY);
    Path left = Path.of(other.address().folder());
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    Files.write(left.resolve("unpublished-output-1-1000"), new byte[10]);
    Files.write(left.resolve("output-1-1001"), new byte[10]);
    Files.copy(left.resolve("output-1-3"), left.resolve("output-1-1002"));
    truncate(left.resolve("output-1-7"));
    heir.adoptSiblings(this::all);
    awaitAdopted(heir, MAPS - 1);
    assertThat(heir.outputs()).doesNotContain(NEEDED).hasSize(MAPS - 1);
  }

  @Test
  void outputsWhoseSegmentIsMissingAreLeftOut() throws Exception {
    startOther(Blocks.IN_MEMORY);
    Path left = Path.of(other.address().folder());
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    assertThat(segments(left)).hasSizeGreaterThan(1);
    Files.delete(left.resolve("segment-0"));
    heir.adoptSiblings(this::all);
    await().untilAsserted(() -> assertThat(heir.statistics().get(OUTPUTS_ADOPTED)).isPositive());
    assertThat(heir.outputs()).isNotEmpty().hasSizeLessThan(MAPS);
    List<BlockRequest> there =
        heir.outputs().stream().map(key -> request("heir", key, 0, PARTITIONS, 1)).toList();
    assertThat(readAll(heir, there)).hasSize(12 * there.size());
  }

  @Test
  void anOutputWithADamagedChunkOnDiskIsLeftOut() throws Exception {
    startOther(Blocks.ON_DISK);
    ExecutorExchange heir = cluster.open("heir");
    other.kill();
    for (Path segment : segments(Path.of(other.address().folder()))) {
      if (Files.isSymbolicLink(segment)) {
        flipFirstByte(Files.readSymbolicLink(segment));
        break;
      }
    }
    heir.adoptSiblings(this::all);
    awaitAdopted(heir, MAPS - 1);
    assertThat(heir.outputs()).hasSize(MAPS - 1);
  }

  @Test
  void encryptedOutputsAreLeftOutWithoutAKey() throws Exception {
    startOther(Blocks.ENCRYPTED);
    ExecutorExchange heir = cluster.unencrypted().open("heir");
    other.kill();
    heir.adoptSiblings(this::all);
    awaitGone(Path.of(other.address().folder()));
    assertThat(heir.outputs()).hasSizeLessThan(MAPS);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void adoptedMemoryCountsInTheBudgetIfItShall(boolean inBudget) throws Exception {
    startOther(Blocks.IN_MEMORY);
    long budget = segments(Path.of(other.address().folder())).size() * TestCluster.SEGMENT_BYTES;
    ExecutorExchange heir =
        cluster.adopting(Verify.NONE, inBudget).memory(budget, 256 << 20).open("heir");
    other.kill();
    heir.adoptSiblings(this::all);
    awaitAdopted(heir, MAPS);
    SharedArena arena = heir.arena();
    long adopted = arena.statistics().memory().reservedBytes();
    assertThat(adopted).isEqualTo(budget);
    arena.free(arena.allocate(1000, Use.RETAINED));
    assertThat(arena.statistics().disk().segments()).isEqualTo(inBudget ? 1 : 0);
    assertThat(arena.statistics().memory().reservedBytes())
        .isEqualTo(inBudget ? adopted : adopted + TestCluster.SEGMENT_BYTES);
  }

  @Test
  void sweepsSpareWhatALivingExecutorMayAdopt() throws Exception {
    startOther(Blocks.IN_MEMORY);
    Path left = Path.of(other.address().folder());
    try (ExecutorExchange living = ExecutorExchange.open(cluster.options("living"), ids -> null)) {
      other.kill();
      assertThat(Leftover.sweep(cluster.root())).isEmpty();
      living.removeShuffle(1);
      assertThat(left).exists();
      try (DeadFolder dead = DeadFolder.seize(left).orElseThrow()) {
        dead.settle();
      }
      assertThat(DeadFolder.seize(left)).as("a settled folder").isEmpty();
      assertThat(Leftover.sweep(cluster.root())).hasSize(1);
      assertThat(left).doesNotExist();
    }
  }

  @Test
  void theLastExecutorRemovesWhatNobodyAdopted() throws Exception {
    startOther(Blocks.ON_DISK);
    ExecutorExchange living = ExecutorExchange.open(cluster.options("living"), ids -> null);
    other.kill();
    assertThat(Path.of(other.address().folder())).exists();
    living.close();
    assertThat(Path.of(other.address().folder())).doesNotExist();
  }

  private Set<BlockKey> all(
      Step step, String id, String incarnation, Collection<BlockKey> outputs) {
    assertThat(id).isEqualTo("other");
    assertThat(incarnation).isEqualTo(other.address().incarnation());
    if (step == Step.MOVE) {
      asked.add(Set.copyOf(outputs));
    }
    return Set.copyOf(outputs);
  }

  private static void awaitAdopted(ExecutorExchange heir, int outputs) {
    await("adopted outputs")
        .atMost(Duration.ofSeconds(30))
        .untilAsserted(() -> assertThat(heir.statistics().get(OUTPUTS_ADOPTED)).isEqualTo(outputs));
  }

  private static void awaitGone(Path left) {
    await("removal of " + left).atMost(Duration.ofSeconds(30)).until(() -> !Files.exists(left));
  }

  private static Set<BlockKey> keys(int maps) {
    return LongStream.range(0, maps)
        .mapToObj(map -> new BlockKey(1, map))
        .collect(Collectors.toSet());
  }

  private static List<BlockRequest> requests(String executor) {
    return LongStream.range(0, MAPS)
        .mapToObj(map -> request(executor, new BlockKey(1, map), 0, PARTITIONS, 1000))
        .toList();
  }

  private static List<Path> segments(Path left) throws IOException {
    Predicate<Path> isSegment = file -> file.getFileName().toString().startsWith("segment-");
    try (Stream<Path> files = Files.list(left)) {
      return files.filter(isSegment).sorted().toList();
    }
  }

  private static void truncate(Path file) throws IOException {
    try (RandomAccessFile open = new RandomAccessFile(file.toFile(), "rw")) {
      open.setLength(open.length() - 1);
    }
  }

  private static void flipFirstByte(Path file) throws IOException {
    try (RandomAccessFile open = new RandomAccessFile(file.toFile(), "rw")) {
      int before = open.read();
      open.seek(0);
      open.write(~before);
    }
  }
}
