package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.ArenaOptions.PrivateMemory;
import io.weft.memory.SpillPolicy.Use;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** An arena with private memory, which uses disk only for encrypted data. */
class PrivateMemoryTest {
  private static final int SEGMENT = 64 << 10;
  private static final Duration TIMEOUT = Duration.ofMillis(20);

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
            new PrivateMemory((long) privateSegments * SEGMENT, 4, TIMEOUT)));
  }

  @Test
  void privateMemoryReplacesDiskAndHasItsBudget() throws IOException {
    try (SharedArena arena = open(1, 8, 4)) {
      List<Extent> all = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        all.add(arena.allocate(SEGMENT, Use.RETAINED));
      }
      assertThat(all)
          .extracting(Extent::kind)
          .containsExactly(MemoryKind.SHARED_MEMORY, MemoryKind.PRIVATE, MemoryKind.PRIVATE);
      assertThatThrownBy(() -> arena.allocate(1, Use.RETAINED))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining("transient private memory: 0 B in use")
          .hasMessageContaining("retained private memory: 128.0 KiB in use of 128.0 KiB reserved")
          .hasMessageContaining("privateMemory");
      assertThat(arena.statistics().disk().segments()).as("disk was not requested").isZero();
      assertThat(arena.statistics().privateMemory().reservedBytes()).isEqualTo(2 * SEGMENT);
      all.forEach(arena::free);
    }
  }

  @Test
  void privateMemoryHasNoFileAndIsReadAndWritten() throws IOException {
    try (SharedArena arena = open(0, 0, 2)) {
      Extent extent = arena.allocate(1000, Use.RETAINED);
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
  void diskIsAllocatedOnRequest() throws IOException {
    try (SharedArena arena = open(4, 1, 2)) {
      Extent extent = arena.allocate(SEGMENT, Use.DISK);
      assertThat(extent.kind()).isEqualTo(MemoryKind.DISK);
      assertThatThrownBy(() -> arena.allocate(1, Use.DISK))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining("diskBytes")
          .hasMessageNotContaining("privateMemory");
      arena.free(extent);
    }
  }

  @Test
  void aFullDiskIsReclaimed() throws IOException {
    try (SharedArena arena = open(4, 1, 2)) {
      Extent unneeded = arena.allocate(SEGMENT, Use.DISK);
      AtomicBoolean freed = new AtomicBoolean();
      arena.onPressure(
          () -> {
            if (!freed.getAndSet(true)) {
              arena.free(unneeded);
            }
          });
      arena.free(arena.allocate(SEGMENT, Use.DISK));
      assertThat(freed).isTrue();
    }
  }

  @Test
  void aDeferrableAllocationGetsNoPrivateMemory() throws IOException {
    try (SharedArena arena = open(1, 0, 4)) {
      Extent shared = arena.allocate(SEGMENT, Use.DEFERRABLE);
      assertThat(shared.kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
      assertThatThrownBy(() -> arena.allocate(1, Use.DEFERRABLE))
          .isInstanceOf(ArenaFullException.class);
      assertThat(arena.tryAllocate(1, Use.DEFERRABLE)).isNull();
      assertThat(arena.tryAllocate(1, Use.SHARED_ONLY)).isNull();
      arena.free(shared);
    }
  }

  /** Without private memory there is nothing to save. */
  @Test
  void aDeferrableAllocationGetsDiskWithoutPrivateMemory() throws IOException {
    try (SharedArena arena = open(0, 1, 0)) {
      Extent extent = arena.allocate(1, Use.DEFERRABLE);
      assertThat(extent.kind()).isEqualTo(MemoryKind.DISK);
      arena.free(extent);
    }
  }

  @Test
  void anOversizeExtentHasItsOwnPrivateSegment() throws IOException {
    try (SharedArena arena = open(0, 0, 6)) {
      Extent large = arena.allocate(3 * SEGMENT, Use.RETAINED);
      assertThat(large.kind()).isEqualTo(MemoryKind.PRIVATE);
      Extent kept = arena.trim(large, SEGMENT + 1);
      Memory.putByte(kept.address() + SEGMENT, (byte) 1);
      arena.free(kept);
      assertThat(arena.statistics().privateMemory().reservedBytes()).isZero();
    }
  }

  @Test
  void idlePrivateMemoryIsFreed() throws IOException {
    try (SharedArena arena = open(0, 0, 2)) {
      Extent extent = arena.allocate(SEGMENT, Use.RETAINED);
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
    PrivateMemory little = new PrivateMemory(2 * SEGMENT - 1, 4, TIMEOUT);
    assertThatThrownBy(() -> new ArenaOptions(folders.arena, List.of(), SEGMENT, 0, 0, 0, little))
        .hasMessageContaining("private memory of 131071 bytes")
        .hasMessageContaining("two segments of 65536");
  }

  @Test
  void halfInWholeSegmentsIsRetainedMemory() {
    PrivateMemory five = new PrivateMemory(5 * SEGMENT, 4, TIMEOUT);
    assertThat(five.retainedBytes(SEGMENT)).isEqualTo(2 * SEGMENT);
    assertThat(five.transientBytes(SEGMENT)).isEqualTo(3 * SEGMENT);
    assertThat(five.describe(SEGMENT))
        .isEqualTo("192.0 KiB of transient and 128.0 KiB of retained private memory");
    assertThat(PrivateMemory.NONE.transientBytes(SEGMENT)).isZero();
    assertThatThrownBy(() -> new PrivateMemory(-1, 4, TIMEOUT)).hasMessageContaining("-1 bytes");
  }

  @Test
  void aTaskHasAShareOfHalfTheTransientMemory() throws IOException {
    try (SharedArena arena = open(1, 0, 8)) {
      assertThat(arena.transientShare()).isEqualTo(4 * SEGMENT / 2 / 4);
    }
    try (SharedArena arena = open(1, 0, 0)) {
      assertThat(arena.transientShare()).isZero();
    }
  }

  @Test
  void fullRetainedMemoryLeavesTransientMemory() throws IOException {
    try (SharedArena arena = open(0, 0, 4)) {
      List<Extent> kept =
          List.of(arena.allocate(SEGMENT, Use.RETAINED), arena.allocate(SEGMENT, Use.RETAINED));
      assertThatThrownBy(() -> arena.allocate(1, Use.RETAINED))
          .isInstanceOf(ArenaFullException.class);
      for (int i = 0; i < 10; i++) {
        Extent one = arena.allocate(SEGMENT, Use.TRANSIENT_NOW);
        Extent another = arena.allocate(SEGMENT, Use.TRANSIENT);
        arena.free(one);
        arena.free(another);
      }
      kept.forEach(arena::free);
    }
  }

  @Test
  void fullTransientMemoryLeavesRetainedMemory() throws IOException {
    try (SharedArena arena = open(0, 0, 4)) {
      List<Extent> all =
          List.of(arena.allocate(SEGMENT, Use.TRANSIENT), arena.allocate(SEGMENT, Use.TRANSIENT));
      assertThat(arena.refusal(MemoryKind.PRIVATE)).isEmpty();
      assertThatThrownBy(() -> arena.allocate(1, Use.TRANSIENT_NOW))
          .isInstanceOf(ArenaFullException.class);
      assertThat(arena.refusal(MemoryKind.PRIVATE)).isPresent();
      arena.free(arena.allocate(SEGMENT, Use.RETAINED));
      all.forEach(arena::free);
    }
  }

  /** Without private memory all uses share the disk. */
  @Test
  void transientMemoryIsDiskWithoutPrivateMemory() throws IOException {
    try (SharedArena arena = open(0, 1, 0)) {
      Extent extent = arena.allocate(SEGMENT, Use.TRANSIENT);
      assertThat(extent.kind()).isEqualTo(MemoryKind.DISK);
      assertThatThrownBy(() -> arena.allocate(1, Use.TRANSIENT)).hasMessageContaining("diskBytes");
      assertThatThrownBy(() -> arena.allocate(1, Use.TRANSIENT_NOW))
          .hasMessageContaining("diskBytes");
      arena.free(extent);
    }
  }
}
