package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.SpillPolicy.Use;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class SharedArenaTest {
  private static final int SEGMENT = 64 << 10;

  private final Folders folders = new Folders();

  @AfterEach
  void removeFolders() {
    folders.close();
  }

  private SharedArena open(int memorySegments, int diskSegments) throws IOException {
    return SharedArena.open(
        new ArenaOptions(
            folders.arena,
            List.of(folders.disk),
            SEGMENT,
            (long) memorySegments * SEGMENT,
            (long) diskSegments * SEGMENT,
            0));
  }

  @Test
  void unusedSegmentsAreFreedAtOnceAndPagesDropped() throws IOException {
    try (SharedArena arena = open(2, 1)) {
      List<Extent> all = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        all.add(arena.allocate(SEGMENT, Use.RETAINED));
      }
      arena.free(all.remove(2));
      arena.free(all.remove(0));
      arena.freeIdle(Duration.ZERO);
      assertThat(arena.statistics().memory().segments()).isEqualTo(1);
      assertThat(arena.statistics().disk().segments()).isZero();
      Memory.putLong(all.get(0).address(), 42);
      arena.dropPages();
      assertThat(Memory.getLong(all.get(0).address())).isEqualTo(42);
      arena.free(all.get(0));
    }
  }

  @Test
  void memoryComesBeforeDiskAndBothHaveTheirBudget() throws IOException {
    try (SharedArena arena = open(2, 1)) {
      List<Extent> all = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        all.add(arena.allocate(SEGMENT, Use.RETAINED));
      }
      assertThat(all)
          .extracting(Extent::kind)
          .containsExactly(MemoryKind.SHARED_MEMORY, MemoryKind.SHARED_MEMORY, MemoryKind.DISK);
      assertThatThrownBy(() -> arena.allocate(1, Use.RETAINED))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining("128.0 KiB in use of 128.0 KiB reserved, budget 128.0 KiB")
          .hasMessageContaining("64.0 KiB in use of 64.0 KiB reserved, budget 64.0 KiB")
          .hasMessageContaining("memoryBytes")
          .hasMessageContaining("diskBytes");
      arena.free(all.remove(1));
      all.add(arena.allocate(1, Use.RETAINED));
      assertThat(all.get(2).kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
      all.forEach(arena::free);
    }
  }

  @Test
  void idleSegmentsAreFreedAndReusedBefore() throws IOException {
    try (SharedArena arena = open(2, 2)) {
      List<Extent> all = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        all.add(arena.allocate(SEGMENT, Use.RETAINED));
      }
      arena.free(all.get(0));
      arena.free(all.get(2));
      arena.freeIdle(Duration.ofHours(1));
      assertThat(arena.statistics().memory().segments()).isEqualTo(2);
      assertThat(arena.statistics().disk().segments()).isEqualTo(2);
      arena.freeIdle(Duration.ZERO);
      assertThat(arena.statistics().memory().segments()).as("the one in use").isEqualTo(1);
      assertThat(arena.statistics().disk().segments()).as("the one in use").isEqualTo(1);
      assertThat(Folders.contents(folders.arena)).as("a segment and a link").hasSize(2);
      arena.free(all.get(1));
      arena.free(all.get(3));
      arena.freeIdle(Duration.ZERO);
      assertThat(arena.statistics().memory().reservedBytes()).isZero();
      assertThat(arena.statistics().disk().reservedBytes()).isZero();
      assertThat(Folders.contents(folders.arena)).isEmpty();
      arena.free(arena.allocate(SEGMENT, Use.RETAINED));
      Extent again = arena.allocate(SEGMENT, Use.RETAINED);
      assertThat(arena.statistics().memory().segments()).as("it was reused").isEqualTo(1);
      arena.free(again);
    }
  }

  /** A process that has mapped a segment reads the same bytes after the owner has deleted it. */
  @Test
  void deletingAnIdleSegmentDoesNotDisturbAMappingOfIt() throws IOException {
    try (SharedArena arena = open(1, 0)) {
      Extent extent = arena.allocate(SEGMENT, Use.RETAINED);
      Memory.setMemory(extent.address(), SEGMENT, (byte) 7);
      try (MappedSegment mapped = MappedSegment.attach(arena.segmentFile(extent.segment()))) {
        arena.free(extent);
        byte freed = Memory.getByte(mapped.address()); // Not 7 if freed memory is overwritten.
        arena.freeIdle(Duration.ZERO);
        assertThat(mapped.file()).doesNotExist();
        Extent next = arena.allocate(SEGMENT, Use.RETAINED);
        assertThat(next.segment()).as("numbers are never used again").isGreaterThan(0);
        Memory.setMemory(next.address(), SEGMENT, (byte) 8);
        for (int i = 0; i < SEGMENT; i += 64) {
          assertThat(Memory.getByte(mapped.address() + i)).isEqualTo(freed);
        }
        arena.free(next);
      }
    }
  }

  /** Another program deletes the folder: nothing that was readable in it is written again. */
  @Test
  void memoryOfADeletedFolderIsNotAllocatedAgain() throws IOException {
    try (SharedArena arena = open(4, 4)) {
      arena.onLostFolder(
          () -> {
            arena.abandonFiles();
            folders.restore();
          });
      Extent kept = arena.allocate(SEGMENT / 2, Use.RETAINED);
      Extent freed = arena.allocate(SEGMENT / 4, Use.RETAINED);
      Extent other = arena.allocate(SEGMENT, Use.RETAINED);
      assertThat(arena.restoreFolder()).isFalse();
      folders.deleteArena();
      assertThat(arena.restoreFolder()).isTrue();
      arena.free(freed);
      Extent next = arena.allocate(SEGMENT / 4, Use.RETAINED);
      assertThat(next.segment()).isGreaterThan(other.segment());
      assertThat(arena.segmentFile(next.segment())).exists();
      assertThat(arena.statistics().memory().segments()).isEqualTo(3);
      arena.free(other);
      assertThat(arena.statistics().memory().segments()).isEqualTo(2);
      arena.free(arena.trim(kept, 64));
      assertThat(arena.statistics().memory().reservedBytes()).isEqualTo(SEGMENT);
      arena.free(next);
    }
  }

  @Test
  void aFolderThatIsGoneIsRestoredBeforeAnAllocationFails() throws IOException {
    try (SharedArena arena = open(1, 1)) {
      arena.onLostFolder(folders::restore);
      folders.deleteArena();
      Extent memory = arena.allocate(SEGMENT, Use.RETAINED);
      assertThat(memory.kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
      folders.deleteArena();
      Extent disk = arena.allocate(SEGMENT, Use.RETAINED);
      assertThat(disk.kind()).isEqualTo(MemoryKind.DISK);
      assertThat(arena.segmentFile(disk.segment())).isSymbolicLink();
      arena.free(memory);
      arena.free(disk);
    }
  }

  @Test
  void withoutBudgetForEitherThereIsAnErrorAndNoFile() throws IOException {
    try (SharedArena arena = open(0, 0)) {
      assertThatThrownBy(() -> arena.allocate(1, Use.RETAINED))
          .isInstanceOf(ArenaFullException.class);
      assertThat(Folders.contents(folders.arena)).isEmpty();
    }
  }

  @Test
  void aBudgetBelowOneSegmentIsNotUsed() throws IOException {
    ArenaOptions options =
        new ArenaOptions(folders.arena, List.of(folders.disk), SEGMENT, SEGMENT - 1, SEGMENT, 0);
    try (SharedArena arena = SharedArena.open(options)) {
      Extent extent = arena.allocate(1, Use.RETAINED);
      assertThat(extent.kind()).isEqualTo(MemoryKind.DISK);
      assertThat(arena.refusal(MemoryKind.SHARED_MEMORY))
          .hasValueSatisfying(
              reason -> assertThat(reason).contains("budget of 64.0 KiB is reached"));
      arena.free(extent);
    }
  }

  @Test
  void aSecondRoundOfTheSameSizeTouchesNoFreshMemory() throws IOException {
    try (SharedArena arena = open(8, 0)) {
      shuffle(arena);
      long fresh = arena.statistics().freshBytes();
      assertThat(fresh).isEqualTo(arena.statistics().reservedBytes()).isPositive();
      for (int round = 0; round < 5; round++) {
        shuffle(arena);
        assertThat(arena.statistics().freshBytes()).isEqualTo(fresh);
      }
    }
  }

  /** Allocates long chunks, trims them to their content, and frees all at the end. */
  private static void shuffle(SharedArena arena) throws IOException {
    SplittableRandom random = new SplittableRandom(1);
    List<Extent> chunks = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      chunks.add(arena.trim(arena.allocate(8 << 10, Use.RETAINED), 1 + random.nextInt(8 << 10)));
    }
    chunks.forEach(arena::free);
  }

  @Test
  void anExtentIsFreedOnce() throws IOException {
    try (SharedArena arena = open(1, 0)) {
      Extent extent = arena.allocate(100, Use.RETAINED);
      arena.free(extent);
      assertThatThrownBy(() -> arena.free(extent))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("is not allocated");
    }
  }

  @Test
  void aSecondFreeIsDetectedAfterThePlaceWasAllocatedAgain() throws IOException {
    try (SharedArena arena = open(1, 0)) {
      Extent first = arena.allocate(100, Use.RETAINED);
      arena.free(first);
      Extent second = arena.allocate(100, Use.RETAINED);
      assertThat(second).isEqualTo(first);
      assertThatThrownBy(() -> arena.free(first)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> arena.trim(first, 1)).isInstanceOf(IllegalStateException.class);
      arena.free(second);
    }
  }

  @Test
  void aTrimmedExtentReplacesTheWholeExtent() throws IOException {
    try (SharedArena arena = open(1, 0)) {
      Extent whole = arena.allocate(SEGMENT, Use.RETAINED);
      Extent left = arena.trim(whole, 65);
      assertThat(left.length()).isEqualTo(128);
      assertThat(arena.statistics().usedBytes()).isEqualTo(128);
      Extent tail = arena.allocate(SEGMENT - 128, Use.RETAINED);
      assertThat(tail.offset()).isEqualTo(128);
      assertThatThrownBy(() -> arena.free(whole)).isInstanceOf(IllegalStateException.class);
      assertThat(arena.trim(left, 127)).isSameAs(left);
      arena.free(left);
      arena.free(tail);
    }
  }

  @Test
  void anExtentCannotBeTrimmedToNothingOrToMore() throws IOException {
    try (SharedArena arena = open(1, 0)) {
      Extent extent = arena.allocate(100, Use.RETAINED);
      assertThatThrownBy(() -> arena.trim(extent, 0)).isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> arena.trim(extent, 129))
          .isInstanceOf(IllegalArgumentException.class);
      arena.free(extent);
      assertThat(arena.statistics().usedBytes()).isZero();
    }
  }

  @Test
  void sizesOutOfRangeAreRefused() throws IOException {
    try (SharedArena arena = open(1, 0)) {
      for (long bytes : new long[] {0, -1, Integer.MAX_VALUE, Long.MAX_VALUE}) {
        assertThatThrownBy(() -> arena.allocate(bytes, Use.RETAINED))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining(Long.toString(bytes));
      }
    }
  }

  @Test
  void anOversizeExtentHasASegmentOfItsOwnUntilItIsFreed() throws IOException {
    try (SharedArena arena = open(4, 0)) {
      Extent small = arena.allocate(64, Use.RETAINED);
      Extent big = arena.allocate(2 * SEGMENT + 1, Use.RETAINED);
      assertThat(big.offset()).isZero();
      assertThat(big.length()).isEqualTo(2 * SEGMENT + 64);
      Path file = arena.segmentFile(big.segment());
      assertThat(Files.size(file)).isEqualTo(big.length());
      assertThat(arena.statistics().reservedBytes()).isEqualTo(3 * SEGMENT + 64);

      arena.free(big);

      assertThat(file).doesNotExist();
      assertThat(Folders.mappings(folders.arena)).isEqualTo(1);
      assertThat(arena.statistics().reservedBytes()).isEqualTo(SEGMENT);
      arena.free(small);
    }
  }

  @Test
  void aTrimmedOversizeExtentGivesItsTailBackToTheFileSystem() throws IOException {
    try (SharedArena arena = open(4, 0)) {
      Extent big = arena.allocate(3 * SEGMENT, Use.RETAINED);
      Memory.setMemory(big.address(), big.length(), (byte) 5);
      Extent left = arena.trim(big, SEGMENT + 1);
      assertThat(Files.size(arena.segmentFile(left.segment()))).isEqualTo(SEGMENT + 64);
      assertThat(arena.statistics().reservedBytes()).isEqualTo(SEGMENT + 64);
      assertThat(arena.statistics().usedBytes()).isEqualTo(SEGMENT + 64);
      assertThat(Memory.getByte(left.address() + SEGMENT)).isEqualTo((byte) 5);
      arena.free(left);
      assertThat(arena.statistics().reservedBytes()).isZero();
    }
  }

  @Test
  void unusedSegmentsAreDeletedForAnOversizeExtent() throws IOException {
    try (SharedArena arena = open(3, 0)) {
      List<Extent> all = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        all.add(arena.allocate(SEGMENT, Use.RETAINED));
      }
      arena.free(all.remove(0));
      assertThatThrownBy(() -> arena.allocate(SEGMENT + 64, Use.RETAINED))
          .isInstanceOf(ArenaFullException.class);
      assertThat(arena.statistics().segments()).as("no segment was deleted in vain").isEqualTo(3);
      arena.free(all.remove(0));
      Extent big = arena.allocate(2 * SEGMENT, Use.RETAINED);
      assertThat(arena.statistics().segments()).isEqualTo(2);
      arena.free(big);
      all.forEach(arena::free);
      assertThat(arena.statistics().segments()).isEqualTo(1);
    }
  }

  @Test
  void segmentNumbersAreNeverUsedTwice() throws IOException {
    try (SharedArena arena = open(2, 0)) {
      Extent first = arena.allocate(2 * SEGMENT, Use.RETAINED);
      arena.free(first);
      Extent second = arena.allocate(2 * SEGMENT, Use.RETAINED);
      assertThat(second.segment()).isNotEqualTo(first.segment());
      arena.free(second);
    }
  }

  @Test
  void hooksThatFreeAreCalledBeforeDiskIsUsedAndBeforeFailing() throws IOException {
    try (SharedArena arena = open(1, 1)) {
      List<Extent> retired = new ArrayList<>(List.of(arena.allocate(SEGMENT, Use.RETAINED)));
      AtomicInteger calls = new AtomicInteger();
      arena.onPressure(
          () -> {
            calls.incrementAndGet();
            retired.forEach(arena::free);
            retired.clear();
          });
      Extent second = arena.allocate(SEGMENT, Use.RETAINED);
      assertThat(second.kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
      assertThat(calls).hasValue(1);
      Extent third = arena.allocate(SEGMENT, Use.RETAINED);
      assertThat(third.kind()).isEqualTo(MemoryKind.DISK);
      assertThatThrownBy(() -> arena.allocate(SEGMENT, Use.RETAINED))
          .isInstanceOf(ArenaFullException.class);
      assertThat(calls).hasValue(3);
      arena.free(second);
      arena.free(third);
    }
  }

  @Test
  void aHookThatFailsDoesNotFailTheAllocation() throws IOException {
    try (SharedArena arena = open(0, 1)) {
      arena.onPressure(
          () -> {
            throw new IllegalStateException("the hook failed");
          });
      arena.free(arena.allocate(1, Use.RETAINED));
    }
  }

  @Test
  void aDiskSegmentIsALinkToAPrivateFile() throws IOException {
    try (SharedArena arena = open(0, 1)) {
      Extent extent = arena.allocate(1000, Use.RETAINED);
      Memory.putLong(extent.address(), 4711);
      Path link = arena.segmentFile(extent.segment());
      assertThat(link).isSymbolicLink();
      Path file = link.toRealPath();
      assertThat(file).startsWith(folders.disk);
      assertThat(file.getFileName().toString()).startsWith("weft-");
      assertThat(file.getParent().getFileName().toString()).startsWith("weft-");
      assertThat(mode(file)).isEqualTo("rw-------");
      assertThat(mode(file.getParent())).isEqualTo("rwx------");
      try (MappedSegment reader = MappedSegment.attach(link)) {
        assertThat(Memory.getLong(reader.address() + extent.offset())).isEqualTo(4711);
      }
      arena.free(extent);
    }
    assertThat(Folders.contents(folders.disk)).isEmpty();
  }

  private static String mode(Path path) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
  }

  @Test
  void diskSegmentsGoToTheFoldersInTurn() throws IOException {
    Path one = Files.createDirectory(folders.disk.resolve("one"));
    Path two = Files.createDirectory(folders.disk.resolve("two"));
    ArenaOptions options =
        new ArenaOptions(folders.arena, List.of(one, two), SEGMENT, 0, 4 * SEGMENT, 0);
    try (SharedArena arena = SharedArena.open(options)) {
      List<Extent> all = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        all.add(arena.allocate(SEGMENT, Use.RETAINED));
      }
      assertThat(Folders.contents(one)).hasSize(3);
      assertThat(Folders.contents(two)).hasSize(3);
      all.forEach(arena::free);
    }
  }

  @Test
  void aViewShowsTheExtentAndNothingElse() throws IOException {
    try (SharedArena arena = open(1, 0)) {
      Extent before = arena.allocate(64, Use.RETAINED);
      Extent extent = arena.allocate(100, Use.RETAINED);
      Memory.putByte(extent.address() + 127, (byte) 9);
      assertThat(arena.view(extent).capacity()).isEqualTo(128);
      assertThat(arena.view(extent).get(127)).isEqualTo((byte) 9);
      arena.free(before);
      arena.free(extent);
    }
  }

  @Test
  void closeRemovesEverythingAndIsFinal() throws IOException {
    SharedArena arena = open(1, 1);
    Extent one = arena.allocate(SEGMENT, Use.RETAINED);
    Extent two = arena.allocate(SEGMENT, Use.RETAINED);
    arena.free(one);
    arena.free(two);
    assertThat(Folders.contents(folders.arena)).hasSize(2);
    arena.close();
    arena.close();
    assertThat(Folders.contents(folders.arena)).isEmpty();
    assertThat(Folders.contents(folders.disk)).isEmpty();
    assertThat(Folders.mappings(folders.arena)).isZero();
    assertThat(Folders.mappings(folders.disk)).isZero();
    assertThat(arena.leakReport()).isEmpty();
    assertThat(arena.statistics().reservedBytes()).isZero();
    assertThatThrownBy(() -> arena.allocate(1, Use.RETAINED))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  @Test
  void extentsLeftAtCloseStayMappedAndAreReported() throws IOException {
    SharedArena arena = open(1, 1);
    Extent one = arena.allocate(SEGMENT, Use.RETAINED);
    Extent two = arena.allocate(2000, Use.RETAINED);
    arena.close();
    assertThat(Folders.contents(folders.arena)).isEmpty();
    assertThat(Folders.contents(folders.disk)).isEmpty();
    assertThat(arena.leakReport())
        .hasValueSatisfying(
            report ->
                assertThat(report)
                    .contains("2 extents (66.0 KiB)")
                    .contains(folders.arena.toString())
                    .contains(one.toString()));

    Memory.putLong(one.address(), 1);
    arena.free(one);
    assertThat(Folders.mappings(folders.arena)).isZero();
    Memory.putLong(two.address(), 1);
    arena.free(two);
    assertThat(Folders.mappings(folders.disk)).isZero();
    assertThat(arena.leakReport()).isEmpty();
    assertThat(arena.statistics().reservedBytes()).isZero();
  }

  @Test
  void anArenaNeedsItsFolder() {
    ArenaOptions options =
        new ArenaOptions(folders.arena.resolve("no"), List.of(), SEGMENT, SEGMENT, 0, 0);
    assertThatThrownBy(() -> SharedArena.open(options))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("does not exist");
  }

  @Test
  void optionsOutOfRangeAreRefused() {
    for (long segment : new long[] {0, 4095, (1L << 30) + 1}) {
      assertThatThrownBy(
              () -> new ArenaOptions(folders.arena, List.of(), segment, SEGMENT, SEGMENT, 0))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("segmentBytes is " + segment);
    }
    assertThatThrownBy(() -> new ArenaOptions(folders.arena, List.of(), SEGMENT, -1, 0, 0))
        .hasMessageContaining("memoryBytes is -1");
    assertThatThrownBy(() -> new ArenaOptions(folders.arena, List.of(), SEGMENT, 0, -1, 0))
        .hasMessageContaining("diskBytes is -1");
    assertThatThrownBy(() -> new ArenaOptions(folders.arena, List.of(), SEGMENT, 0, 0, -1))
        .hasMessageContaining("marginBytes is -1");
  }

  /** Mixed lifetimes, and lengths up to an eighth of a segment that are not trimmed. */
  @Test
  void fragmentationIsBounded() throws IOException {
    assertThat(leastUseWhenFull(false)).isGreaterThan(0.85);
  }

  /** Half of each extent is freed at once, so that long requests find short holes. */
  @Test
  void fragmentationIsBoundedAlsoWhenExtentsAreTrimmed() throws IOException {
    assertThat(leastUseWhenFull(true)).isGreaterThan(0.6);
  }

  private double leastUseWhenFull(boolean trimmed) throws IOException {
    double least = 1;
    try (SharedArena arena = open(64, 0)) {
      SplittableRandom random = new SplittableRandom(42);
      List<Extent> held = new ArrayList<>();
      for (int i = 0; i < 20_000; i++) {
        try {
          Extent extent = arena.allocate(1 + random.nextInt(SEGMENT / 8), Use.RETAINED);
          held.add(
              trimmed ? arena.trim(extent, 1 + random.nextInt((int) extent.length())) : extent);
        } catch (ArenaFullException e) {
          least = Math.min(least, (double) arena.statistics().usedBytes() / (64 * SEGMENT));
          arena.free(held.remove(random.nextInt(held.size())));
        }
      }
      assertThat(least).as("was full at least once").isLessThan(1);
      held.forEach(arena::free);
    }
    return least;
  }
}
