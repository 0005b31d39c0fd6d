package io.weft.collectives.symmetric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.symmetric.CollectiveMemoryCache.CacheStatistics;
import io.weft.collectives.symmetric.CollectiveMemoryCache.Offer;
import io.weft.collectives.symmetric.SymmetricArena.WindowRequest;
import io.weft.logging.CapturedLogs;
import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Communicators one after the other, in executors that each have an arena and a cache. */
class CollectiveMemoryCacheTest {
  private static final int BYTES = 1 << 20;
  private static final long BUDGET = 12L << 20;

  @TempDir Path folder;

  private final List<Executor> executors = new ArrayList<>();
  private long now;
  private boolean failToFree;

  /** One process's memory. */
  private record Executor(SharedArena arena, CollectiveMemoryCache cache) {}

  @BeforeEach
  void open() throws IOException {
    for (int i = 0; i < 3; i++) {
      Path own = Files.createDirectory(folder.resolve("executor-" + i));
      SharedArena arena = SharedArena.open(new ArenaOptions(own, List.of(), 1 << 20, BUDGET, 0, 0));
      CollectiveMemoryCache cache = new CollectiveMemoryCache(() -> now);
      arena.onPressure(cache::freeUnused);
      executors.add(new Executor(arena, cache));
    }
  }

  /** Every test ends with empty arenas. */
  @AfterEach
  void close() {
    for (Executor executor : executors) {
      executor.cache.close();
      assertThat(executor.cache.statistics().usedBytes()).isZero();
      assertThat(executor.arena.statistics().usedBytes()).isZero();
      executor.arena.close();
    }
  }

  /** A gang with a rank in each of these executors. */
  private RankGang gang(Integer... members) {
    return gang(Duration.ofSeconds(60), members);
  }

  private RankGang gang(Duration timeout, Integer... members) {
    List<CommunicatorFactory> factories = new ArrayList<>();
    for (int member : members) {
      Executor executor = executors.get(member);
      HostOptions options =
          HostOptions.defaults()
              .withFolder(folder.resolve("host"))
              .withSymmetric(SymmetricOptions.cached(memory(executor.arena), executor.cache));
      factories.add(new HostCommunicators(options));
    }
    return RankGang.open(factories, timeout);
  }

  private SegmentMemory memory(SharedArena arena) {
    SegmentMemory memory = SegmentMemory.of(arena);
    return failToFree ? (id, rank, bytes) -> new Stubborn(memory.reserve(id, rank, bytes)) : memory;
  }

  /** A part that reports a failure after it was freed. */
  private record Stubborn(SegmentMemory.Part part) implements SegmentMemory.Part {
    @Override
    public Path file() {
      return part.file();
    }

    @Override
    public long address() {
      return part.address();
    }

    @Override
    public void close() {
      part.close();
      throw new IllegalStateException("not freed completely");
    }
  }

  /** Allocates a buffer on all ranks, checks that it is empty and reduces it. */
  private void stage(Integer... members) {
    try (RankGang gang = gang(members)) {
      gang.run(communicator -> reduce(communicator, BYTES));
    }
  }

  private static void reduce(Communicator communicator, int bytes) {
    SymmetricBuffer buffer = communicator.symmetric(DataType.INT32, bytes / 4);
    assertThat(buffer.whyPrivate()).isEmpty();
    Values.check("zeros", buffer.elements(), index -> 0);
    Values.fill(buffer.elements(), index -> communicator.rank() + 1);
    communicator.allReduce(buffer.elements(), ReduceOp.SUM);
    int n = communicator.nranks();
    Values.check("sum", buffer.elements(), index -> n * (n + 1) / 2);
  }

  private CacheStatistics cache(int executor) {
    return executors.get(executor).cache.statistics();
  }

  private void checkCounters(int executor, long hits, long misses) {
    CacheStatistics now = cache(executor);
    assertThat(now.hits()).as("hits of executor " + executor).isEqualTo(hits);
    assertThat(now.misses()).as("misses of executor " + executor).isEqualTo(misses);
  }

  @Test
  void secondCommunicatorOfTheSameMembersTakesNoFreshMemory() {
    stage(0, 1);
    long fresh = cache(0).freshBytes();
    long arenaFresh = executors.get(0).arena.statistics().freshBytes();
    for (int i = 0; i < 3; i++) {
      stage(0, 1);
    }
    checkCounters(0, 3, 1);
    checkCounters(1, 3, 1);
    assertThat(cache(0).freshBytes()).isEqualTo(fresh).isPositive();
    assertThat(executors.get(0).arena.statistics().freshBytes()).isEqualTo(arenaFresh);
    assertThat(cache(0).idleBytes()).isEqualTo(fresh);
  }

  /** Spark gives the ranks of the next stage to the executors in another order. */
  @Test
  void ranksInAnotherOrderFindTheirMemory() {
    List<Integer> members = new ArrayList<>(List.of(0, 1, 2, 1));
    for (int i = 0; i < 6; i++) {
      stage(members.toArray(Integer[]::new));
      Collections.rotate(members, 1);
    }
    checkCounters(0, 5, 1);
    checkCounters(1, 10, 2);
    checkCounters(2, 5, 1);
  }

  @Test
  void otherMembersGetOtherMemory() {
    stage(0, 1);
    stage(0, 2);
    stage(0);
    stage(0, 1);
    checkCounters(0, 1, 3);
    checkCounters(1, 1, 1);
    checkCounters(2, 0, 1);
  }

  /** Trap: one rank has freed its part, and the others use theirs. */
  @Test
  void memoryFreedOnOneRankIsFreedOnAllAndNamed() {
    CapturedLogs.clear();
    stage(0, 1, 2);
    executors.get(1).cache.freeUnused();
    stage(0, 1, 2);
    for (int executor = 0; executor < 3; executor++) {
      checkCounters(executor, 0, 2);
      assertThat(cache(executor).mismatches()).isEqualTo(executor == 1 ? 0 : 1);
    }
    assertThat(CapturedLogs.lines())
        .filteredOn(line -> line.contains("freed a symmetric segment"))
        .hasSize(2)
        .allSatisfy(line -> assertThat(line).startsWith("WARN").contains("rank 1 freed"));
    stage(0, 1, 2);
    checkCounters(0, 1, 2);
  }

  /** A rank that has ended early must not lend memory that a slower rank still writes to. */
  @Test
  void memoryThatAnotherRankStillUsesIsNotReused() {
    try (RankGang first = gang(0, 1)) {
      first.run(communicator -> reduce(communicator, BYTES));
      first.rank(0).close();
      stage(0, 1);
      checkCounters(0, 0, 2);
    }
    stage(0, 1);
    checkCounters(0, 1, 2);
    assertThat(cache(0).mismatches()).isZero();
  }

  @Test
  void failedCommunicatorFreesItsMemory() {
    try (RankGang gang = gang(0, 1)) {
      gang.run(communicator -> reduce(communicator, BYTES));
      gang.rank(1).abort("its task failed");
      assertThatThrownBy(() -> gang.rank(0).barrier()).hasMessageContaining("its task failed");
    }
    assertThat(cache(0).idleBytes()).isZero();
    assertThat(cache(1).idleBytes()).isZero();
    assertThat(executors.get(0).arena.statistics().usedBytes()).isZero();
    stage(0, 1);
    checkCounters(0, 0, 2);
  }

  @Test
  void idleMemoryIsFreedAfterItsTime() {
    stage(0, 1);
    now = Duration.ofMinutes(1).toNanos();
    executors.get(0).cache.freeIdle(Duration.ofMinutes(2));
    assertThat(cache(0).idleBytes()).isPositive();
    executors.get(0).cache.freeIdle(Duration.ofMinutes(1));
    assertThat(cache(0).idleBytes()).isZero();
    assertThat(executors.get(0).arena.statistics().usedBytes()).isZero();
  }

  /** Another gang's memory makes room before the budget counts as full. */
  @Test
  void memoryOfOtherMembersMakesRoom() {
    try (RankGang gang = gang(0, 1)) {
      gang.run(communicator -> reduce(communicator, 7 << 20));
    }
    try (RankGang gang = gang(0, 2)) {
      gang.run(communicator -> reduce(communicator, 7 << 20));
    }
    checkCounters(0, 0, 2);
    assertThat(executors.get(0).arena.statistics().memory().reservedBytes())
        .isLessThanOrEqualTo(BUDGET);
  }

  @Test
  void withoutRoomAllRanksGetPrivateMemoryWithTheReason() {
    try (RankGang gang = gang(0, 1)) {
      gang.run(
          communicator -> {
            SymmetricBuffer buffer = communicator.symmetric(DataType.INT8, BUDGET + 1);
            assertThat(buffer.whyPrivate().orElseThrow()).contains("no segment of", "memoryBytes");
            Values.fill(buffer.elements(), index -> 1);
            communicator.allReduce(buffer.elements(), ReduceOp.SUM);
            Values.check("sum", buffer.elements(), index -> 2);
            buffer.barrier(0, 1);
            assertThatThrownBy(() -> buffer.put(buffer.elements(), 0, 0))
                .isInstanceOf(CollectiveException.class)
                .hasMessageContaining("Use send and receive");
            reduce(communicator, BYTES);
          });
    }
  }

  @Test
  void differentRequestsAreNamedAndTheCommunicatorStaysUsable() {
    try (RankGang gang = gang(0, 1, 2)) {
      gang.run(
          communicator -> {
            boolean other = communicator.rank() == 2;
            CollectiveException size =
                catchThrowableOfType(
                    CollectiveException.class,
                    () -> communicator.symmetric(DataType.INT64, other ? 11 : 10));
            assertThat(size.kind()).isEqualTo(Kind.MISMATCH);
            assertThat(size.ranks()).containsExactly(0, 2);
            assertThat(size).hasMessageContainingAll("rank 2", "10 int64", "11 int64");
            CollectiveException type =
                catchThrowableOfType(
                    CollectiveException.class,
                    () -> communicator.symmetric(other ? DataType.INT32 : DataType.FLOAT32, 10));
            assertThat(type).hasMessageContainingAll("rank 2", "10 int32", "10 float32");
            reduce(communicator, BYTES);
          });
    }
  }

  /** One rank asks for a buffer while the other runs an operation. */
  @Test
  void anotherOrderFailsOnAllRanks() {
    try (RankGang gang = gang(0, 1)) {
      gang.run(
          communicator ->
              assertThatThrownBy(
                      () -> {
                        if (communicator.rank() == 0) {
                          communicator.symmetric(DataType.INT64, 10).close();
                        } else {
                          communicator.barrier();
                        }
                      })
                  .isInstanceOf(CollectiveException.class)
                  .hasMessageContainingAll("rank 0", "rank 1"));
    }
  }

  /** Trap: a copy reads or writes memory that its owner has freed. */
  @Test
  void copiesRefuseFreedMemoryOfTheCaller() {
    try (RankGang gang = gang(0, 1)) {
      gang.run(
          communicator -> {
            SymmetricBuffer target = communicator.symmetric(DataType.INT32, 10);
            SymmetricBuffer buffer = communicator.symmetric(DataType.INT32, 10);
            Tensor tensor = Tensor.allocate(TensorType.of(DataType.INT32, 10));
            List<TypedBuffer> buffers = List.of(buffer.elements(), tensor.buffer());
            buffers.forEach(open -> target.put(open, communicator.rank(), 0));
            buffer.close();
            tensor.close();
            for (TypedBuffer freed : buffers) {
              requireFreed(() -> target.put(freed, communicator.rank(), 0));
              requireFreed(() -> target.get(freed, communicator.rank(), 0));
            }
            assertThat(communicator.failure()).isEmpty();
          });
    }
  }

  private static void requireFreed(Runnable copy) {
    CollectiveException refused = catchThrowableOfType(CollectiveException.class, copy::run);
    assertThat(refused.kind()).isEqualTo(Kind.INVALID);
    assertThat(refused).hasMessageContaining("was freed");
  }

  /** The third rank waits for no timeout, and no later stage gets the memory. */
  @Test
  void aFailedBarrierBreaksTheCommunicatorAndFreesItsMemory() {
    try (RankGang gang = gang(0, 1, 2)) {
      gang.run(
          communicator -> {
            SymmetricBuffer buffer = communicator.symmetric(DataType.INT32, 10);
            int[] ranks = communicator.rank() == 0 ? new int[] {0, 1} : new int[] {0, 1, 2};
            assertThatThrownBy(() -> buffer.barrier(ranks))
                .isInstanceOf(CollectiveException.class)
                .hasMessageContaining("in a barrier of ranks");
            assertThat(communicator.failure()).isPresent();
            assertThatThrownBy(communicator::barrier).isInstanceOf(CollectiveException.class);
          });
    }
    for (int executor = 0; executor < 3; executor++) {
      assertThat(cache(executor).idleBytes()).isZero();
    }
  }

  @Test
  void aFailedWaitForASignalBreaksTheCommunicator() {
    try (RankGang gang = gang(Duration.ofSeconds(2), 0, 1)) {
      gang.run(
          communicator -> {
            SymmetricBuffer buffer = communicator.symmetric(DataType.INT32, 10);
            assertThatThrownBy(() -> buffer.await(1 - communicator.rank(), 0, 1))
                .isInstanceOf(CollectiveException.class);
            assertThat(communicator.failure()).isPresent();
          });
    }
    assertThat(cache(0).idleBytes() + cache(1).idleBytes()).isZero();
  }

  /** A small buffer takes the small segment, and the large one grows older. */
  @Test
  void onlyTheMemoryThatIsNeededIsTaken() {
    try (RankGang gang = gang(0, 1)) {
      gang.run(
          communicator -> {
            reduce(communicator, 5 << 20);
            reduce(communicator, BYTES);
          });
    }
    long both = cache(0).idleBytes();
    now = Duration.ofMinutes(1).toNanos();
    try (RankGang gang = gang(0, 1)) {
      gang.run(communicator -> reduce(communicator, BYTES));
      assertThat(cache(0).usedBytes()).isEqualTo(4 << 20);
      assertThat(cache(0).idleBytes()).isEqualTo(both - (4 << 20));
      executors.get(0).cache.freeIdle(Duration.ofMinutes(1));
      assertThat(cache(0).idleBytes()).isZero();
    }
    checkCounters(0, 1, 2);
  }

  /** Trap: a segment that cannot be freed keeps the others. */
  @Test
  void aFailureToFreeASegmentLeavesNoOther() {
    failToFree = true;
    try (RankGang gang = gang(0, 1)) {
      gang.run(
          communicator -> {
            reduce(communicator, 5 << 20);
            reduce(communicator, BYTES);
          });
    }
    assertThat(cache(0).idleBytes()).isPositive();
    executors.get(0).cache.freeUnused();
    assertThat(cache(0).idleBytes()).isZero();
    assertThat(executors.get(0).arena.statistics().usedBytes()).isZero();
  }

  @Test
  void aNegativeCountOfOneRankIsAnErrorOnAll() {
    try (RankGang gang = gang(0, 1)) {
      gang.run(
          communicator -> {
            assertThatThrownBy(() -> communicator.symmetric(DataType.INT32, -communicator.rank()))
                .isInstanceOfSatisfying(
                    CollectiveException.class,
                    refused -> assertThat(refused.kind()).isEqualTo(Kind.INVALID))
                .hasMessageContaining("rank 1 asks for a symmetric window of -1 int32");
            reduce(communicator, BYTES);
          });
    }
  }

  /** Messages of other ranks are read within their bounds. */
  @Test
  void forgedOffersAndRequestsAreReadOrRefused() throws IOException {
    Offer offer = new Offer(List.of("a-0", "b-1"), List.of("c-2@1"));
    WindowRequest request = new WindowRequest(100, "25 float32", 3, Set.of(1, 2));
    assertThat(Offer.decode(offer.encode())).isEqualTo(offer);
    assertThat(WindowRequest.decode(request.encode())).isEqualTo(request);
    SplittableRandom random = new SplittableRandom(7);
    for (int i = 0; i < 20_000; i++) {
      byte[] bytes = i % 2 == 0 ? offer.encode() : request.encode();
      byte[] forged = Arrays.copyOf(bytes, random.nextInt(bytes.length + 4));
      if (forged.length > 0) {
        forged[random.nextInt(forged.length)] = (byte) random.nextInt();
      }
      boolean isOffer = i % 2 == 0;
      Throwable failure =
          catchThrowable(
              () -> {
                var unused = isOffer ? Offer.decode(forged) : WindowRequest.decode(forged);
              });
      if (failure != null) {
        assertThat(failure).isInstanceOf(CollectiveException.class);
      }
    }
  }

  @Test
  void ranksPutSignalAndWaitInReusedMemory() {
    for (int round = 0; round < 3; round++) {
      try (RankGang gang = gang(0, 1, 2)) {
        gang.run(CollectiveMemoryCacheTest::pass);
      }
    }
    checkCounters(0, 4, 2);
  }

  private static void pass(Communicator communicator) {
    int next = (communicator.rank() + 1) % communicator.nranks();
    int before = (communicator.rank() + communicator.nranks() - 1) % communicator.nranks();
    SymmetricBuffer own = communicator.symmetric(DataType.INT32, 4);
    SymmetricBuffer ring = communicator.symmetric(DataType.INT32, 8);
    for (int i = 1; i <= 20; i++) {
      int round = i;
      Values.fill(own.elements(), index -> 100 * communicator.rank() + round);
      ring.put(own.elements(), next, 4);
      ring.signal(next, 3, i);
      ring.await(before, 3, i);
      Values.check("received", ring.elements().slice(4, 4), index -> 100 * before + round);
      if (communicator.rank() < 2) {
        own.barrier(0, 1);
      }
      ring.barrier();
    }
    assertThatThrownBy(() -> ring.put(own.elements(), next, 5))
        .isInstanceOf(IndexOutOfBoundsException.class);
    ring.close();
    assertThatThrownBy(() -> ring.signal(next, 3, 1)).isInstanceOf(IllegalStateException.class);
  }
}
