package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** An arena whose disk is for those alone who ask for it. */
class PrivateMemoryTest {
  private static final int SEGMENT = 64 << 10;
  private static final Duration PATIENCE = Duration.ofMillis(20);

  private final Folders folders = new Folders();

  @AfterEach
  void removeFolders() {
    folders.close();
  }

  private SharedArena open(int memorySegments, int diskSegments, int privateSegments)
      throws IOException {
    return SharedArena.open(
        new ArenaOptions(
            folders.arena,
            List.of(folders.disk),
            SEGMENT,
            (long) memorySegments * SEGMENT,
            (long) diskSegments * SEGMENT,
            0,
            new PrivateMemory((long) privateSegments * SEGMENT, 4, PATIENCE)));
  }

  @Test
  void itTakesThePlaceOfTheDiskAndHasItsBudget() throws IOException {
    try (SharedArena arena = open(1, 8, 4)) {
      List<Extent> all = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        all.add(arena.allocate(SEGMENT));
      }
      assertThat(all)
          .extracting(Extent::kind)
          .containsExactly(MemoryKind.SHARED_MEMORY, MemoryKind.PRIVATE, MemoryKind.PRIVATE);
      assertThatThrownBy(() -> arena.allocate(1))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining("private memory for moments: 0 B in use")
          .hasMessageContaining("private memory for long: 128.0 KiB in use of 128.0 KiB reserved")
          .hasMessageContaining("privateMemory");
      assertThat(arena.statistics().disk().segments()).as("nobody asked for disk").isZero();
      assertThat(arena.statistics().privateMemory().reservedBytes()).isEqualTo(2 * SEGMENT);
      all.forEach(arena::free);
    }
  }

  @Test
  void itHasNoFileAndIsReadAndWrittenLikeAnyOther() throws IOException {
    try (SharedArena arena = open(0, 0, 2)) {
      Extent extent = arena.allocate(1000);
      assertThat(extent.address() % 64).isZero();
      assertThat(Files.exists(arena.segmentFile(extent.segment()))).isFalse();
      Memory.putLong(extent.address() + 992, 42);
      assertThat(arena.view(extent).order(java.nio.ByteOrder.nativeOrder()).getLong(992))
          .isEqualTo(42);
      assertThat(arena.view(extent).capacity()).isEqualTo(1024);
      arena.free(arena.trim(extent, 10));
    }
  }

  @Test
  void diskIsThereForThoseWhoAskForIt() throws IOException {
    try (SharedArena arena = open(4, 1, 2)) {
      Extent extent = arena.allocateDisk(SEGMENT);
      assertThat(extent.kind()).isEqualTo(MemoryKind.DISK);
      assertThatThrownBy(() -> arena.allocateDisk(1))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining("diskBytes")
          .hasMessageNotContaining("privateMemory");
      arena.free(extent);
    }
  }

  @Test
  void whereTheDiskIsFullWhatIsNoLongerNeededMakesRoom() throws IOException {
    try (SharedArena arena = open(4, 1, 2)) {
      Extent unneeded = arena.allocateDisk(SEGMENT);
      AtomicBoolean freed = new AtomicBoolean();
      arena.onPressure(
          () -> {
            if (!freed.getAndSet(true)) {
              arena.free(unneeded);
            }
          });
      arena.free(arena.allocateDisk(SEGMENT));
      assertThat(freed).isTrue();
    }
  }

  @Test
  void whoCanWaitGetsNone() throws IOException {
    try (SharedArena arena = open(1, 0, 4)) {
      Extent shared = arena.allocateSpare(SEGMENT);
      assertThat(shared.kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
      assertThat(arena.allocateSpare(1)).isNull();
      arena.free(shared);
    }
  }

  /** Without private memory there is nothing to be spared. */
  @Test
  void ofAnOrdinaryArenaWhoCanWaitGetsDisk() throws IOException {
    try (SharedArena arena = open(0, 1, 0)) {
      Extent extent = arena.allocateSpare(1);
      assertThat(extent.kind()).isEqualTo(MemoryKind.DISK);
      arena.free(extent);
    }
  }

  @Test
  void oneLargerThanASegmentComesAndGoesAlone() throws IOException {
    try (SharedArena arena = open(0, 0, 6)) {
      Extent large = arena.allocate(3 * SEGMENT);
      assertThat(large.kind()).isEqualTo(MemoryKind.PRIVATE);
      Extent kept = arena.trim(large, SEGMENT + 1);
      Memory.putByte(kept.address() + SEGMENT, (byte) 1);
      arena.free(kept);
      assertThat(arena.statistics().privateMemory().reservedBytes()).isZero();
    }
  }

  @Test
  void itIsGivenBackWhenNobodyUsedItForAWhile() throws IOException {
    try (SharedArena arena = open(0, 0, 2)) {
      Extent extent = arena.allocate(SEGMENT);
      arena.freeIdle(Duration.ZERO);
      assertThat(arena.statistics().privateMemory().segments()).isEqualTo(1);
      arena.free(extent);
      arena.freeIdle(Duration.ofHours(1));
      assertThat(arena.statistics().privateMemory().segments()).isEqualTo(1);
      arena.freeIdle(Duration.ZERO);
      assertThat(arena.statistics().privateMemory().segments()).isZero();
    }
  }

  @Test
  void lessThanTwoSegmentsAreRefused() {
    PrivateMemory little = new PrivateMemory(2 * SEGMENT - 1, 4, PATIENCE);
    assertThatThrownBy(() -> new ArenaOptions(folders.arena, List.of(), SEGMENT, 0, 0, 0, little))
        .hasMessageContaining("private memory of 131071 bytes")
        .hasMessageContaining("two segments of 65536");
  }

  @Test
  void halfOfItInWholeSegmentsIsForThoseWhoKeepIt() {
    PrivateMemory five = new PrivateMemory(5 * SEGMENT, 4, PATIENCE);
    assertThat(five.lastingBytes(SEGMENT)).isEqualTo(2 * SEGMENT);
    assertThat(five.workingBytes(SEGMENT)).isEqualTo(3 * SEGMENT);
    assertThat(five.describe(SEGMENT))
        .isEqualTo("192.0 KiB of private memory for moments and 128.0 KiB for long");
    assertThat(PrivateMemory.NONE.workingBytes(SEGMENT)).isZero();
    assertThatThrownBy(() -> new PrivateMemory(-1, 4, PATIENCE)).hasMessageContaining("-1 bytes");
  }

  @Test
  void oneWhoNeedsManyPiecesSharesHalfWithTheOthers() throws IOException {
    try (SharedArena arena = open(1, 0, 8)) {
      assertThat(arena.workingShare()).isEqualTo(4 * SEGMENT / 2 / 4);
    }
    try (SharedArena arena = open(1, 0, 0)) {
      assertThat(arena.workingShare()).isZero();
    }
  }

  @Test
  void whoKeepsAllThatThereIsToKeepLeavesTheRestToOthers() throws IOException {
    try (SharedArena arena = open(0, 0, 4)) {
      List<Extent> kept = List.of(arena.allocate(SEGMENT), arena.allocate(SEGMENT));
      assertThatThrownBy(() -> arena.allocate(1)).isInstanceOf(ArenaFullException.class);
      for (int i = 0; i < 10; i++) {
        Extent moment = arena.allocateWorkingNow(SEGMENT);
        Extent another = arena.allocateWorking(SEGMENT);
        arena.free(moment);
        arena.free(another);
      }
      kept.forEach(arena::free);
    }
  }

  @Test
  void whoUsesAllThatThereIsForMomentsLeavesTheRestToThoseWhoKeepIt() throws IOException {
    try (SharedArena arena = open(0, 0, 4)) {
      List<Extent> moments =
          List.of(arena.allocateWorking(SEGMENT), arena.allocateWorking(SEGMENT));
      assertThat(arena.refusal(MemoryKind.PRIVATE)).isEmpty();
      assertThatThrownBy(() -> arena.allocateWorkingNow(1)).isInstanceOf(ArenaFullException.class);
      assertThat(arena.refusal(MemoryKind.PRIVATE)).isPresent();
      arena.free(arena.allocate(SEGMENT));
      moments.forEach(arena::free);
    }
  }

  /** Without private memory there is one disk for all. */
  @Test
  void ofAnOrdinaryArenaMemoryForMomentsIsAnyMemory() throws IOException {
    try (SharedArena arena = open(0, 1, 0)) {
      Extent extent = arena.allocateWorking(SEGMENT);
      assertThat(extent.kind()).isEqualTo(MemoryKind.DISK);
      assertThatThrownBy(() -> arena.allocateWorking(1)).hasMessageContaining("diskBytes");
      assertThatThrownBy(() -> arena.allocateWorkingNow(1)).hasMessageContaining("diskBytes");
      arena.free(extent);
    }
  }
}
