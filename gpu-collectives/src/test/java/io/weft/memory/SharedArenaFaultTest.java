package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.ArenaOptions.PrivateMemory;
import io.weft.memory.SpillPolicy.Use;
import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** File systems that are full, fill up, are read-only or missing. */
class SharedArenaFaultTest {
  private static final int SEGMENT = 64 << 10;

  private final Folders folders = new Folders();
  private final FaultyStorage storage = new FaultyStorage();

  @AfterEach
  void removeFolders() {
    folders.close();
  }

  private ArenaOptions options(Path arenaFolder, long marginBytes) {
    return new ArenaOptions(
        arenaFolder, List.of(folders.disk), SEGMENT, 100L * SEGMENT, 100L * SEGMENT, marginBytes);
  }

  @Test
  void theMarginOfTheFileSystemIsKept() throws IOException {
    try (SharedArena arena = SharedArena.open(options(folders.arena, 1000), storage)) {
      storage.usableBytes = SEGMENT + 1000;
      Extent fits = arena.allocate(SEGMENT, Use.RETAINED);
      storage.usableBytes = SEGMENT + 999;
      assertThatThrownBy(() -> arena.allocate(SEGMENT, Use.RETAINED))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining(folders.arena + " has 65.0 KiB left")
          .hasMessageContaining("a margin of 1000 B");
      arena.free(fits);
    }
  }

  /** The disk takes what the limit refuses, and memory is used again when the limit allows it. */
  @Test
  void aLimitRefusesSegmentsOfSharedMemoryOnly() throws IOException {
    AtomicReference<String> objection = new AtomicReference<>();
    ArenaOptions options =
        new ArenaOptions(
            folders.arena,
            List.of(folders.disk),
            SEGMENT,
            100L * SEGMENT,
            100L * SEGMENT,
            0,
            PrivateMemory.NONE,
            bytes -> Optional.ofNullable(objection.get()),
            SettingNames.OWN);
    try (SharedArena arena = SharedArena.open(options, storage)) {
      objection.set("the container is full");
      Extent first = arena.allocate(SEGMENT, Use.RETAINED);
      assertThat(first.kind()).isEqualTo(MemoryKind.DISK);
      assertThat(arena.refusal(MemoryKind.SHARED_MEMORY)).hasValue("the container is full");
      assertThat(arena.tryAllocate(SEGMENT, Use.SHARED_ONLY)).isNull();
      objection.set(null);
      Extent second = arena.allocate(SEGMENT, Use.RETAINED);
      assertThat(second.kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
      arena.free(first);
      arena.free(second);
    }
  }

  /** Between the creation of a file and its first use, another program deletes the folder. */
  @Test
  void aSegmentThatLosesItsNameWhileItIsMadeIsMadeAgain() throws IOException {
    storage.reserve =
        (file, bytes) -> {
          MappedSegment made = MappedSegment.reserve(file, bytes);
          storage.reserve = MappedSegment::reserve;
          folders.deleteArena();
          folders.restore();
          return made;
        };
    try (SharedArena arena = SharedArena.open(options(folders.arena, 0), storage)) {
      Extent extent = arena.allocate(SEGMENT / 2, Use.RETAINED);
      assertThat(arena.segmentFile(extent.segment())).exists();
      assertThat(arena.statistics().memory().segments()).isEqualTo(1);
      Extent beside = arena.allocate(SEGMENT / 2, Use.RETAINED);
      assertThat(beside.segment()).isEqualTo(extent.segment());
      arena.free(extent);
      arena.free(beside);
    }
  }

  @Test
  void aFileSystemThatFillsUpMidwayLeavesNoFileAndDiskTakesOver() throws IOException {
    storage.reserve =
        (file, bytes) -> {
          if (file.startsWith(folders.arena)) {
            throw new FileSystemException(file.toString(), null, "No space left on device");
          }
          return MappedSegment.reserve(file, bytes);
        };
    try (SharedArena arena = SharedArena.open(options(folders.arena, 0), storage)) {
      Extent extent = arena.allocate(SEGMENT, Use.RETAINED);
      assertThat(extent.kind()).isEqualTo(MemoryKind.DISK);
      assertThat(arena.refusal(MemoryKind.SHARED_MEMORY))
          .hasValueSatisfying(reason -> assertThat(reason).contains("No space left on device"));
      assertThat(arena.statistics().memory())
          .isEqualTo(new ArenaStatistics.TierStatistics(0, 0, 0, 0));
      arena.free(extent);
    }
  }

  @Test
  void aFolderThatFailedIsTriedAgainLater() throws IOException {
    storage.reserve =
        (file, bytes) -> {
          if (file.startsWith(folders.arena)) {
            throw new FileSystemException(file.toString(), null, "Input/output error");
          }
          return MappedSegment.reserve(file, bytes);
        };
    try (SharedArena arena = SharedArena.open(options(folders.arena, 0), storage)) {
      List<Extent> held = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        held.add(arena.allocate(SEGMENT, Use.RETAINED));
      }
      assertThat(storage.reserves).as("one failure, three on disk").hasValue(4);
      storage.nanoTime = TimeUnit.SECONDS.toNanos(6);
      storage.reserve = MappedSegment::reserve;
      held.add(arena.allocate(SEGMENT, Use.RETAINED));
      assertThat(held.get(3).kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
      held.forEach(arena::free);
    }
  }

  @Test
  void aFailedGrowthGivesItsBudgetBack() throws IOException {
    ArenaOptions tight = new ArenaOptions(folders.arena, List.of(), SEGMENT, SEGMENT, 0, 0);
    storage.reserve =
        (file, bytes) -> {
          throw new IllegalStateException("a failure that is no I/O error");
        };
    try (SharedArena arena = SharedArena.open(tight, storage)) {
      assertThatThrownBy(() -> arena.allocate(1, Use.RETAINED))
          .isInstanceOf(IllegalStateException.class);
      storage.reserve = MappedSegment::reserve;
      arena.free(arena.allocate(1, Use.RETAINED));
    }
  }

  @Test
  void aDiskFolderThatFailsIsPassedOver() throws IOException {
    Path gone = folders.disk.resolve("gone");
    Path good = Files.createDirectory(folders.disk.resolve("good"));
    ArenaOptions options =
        new ArenaOptions(folders.arena, List.of(gone, good), SEGMENT, 0, 4L * SEGMENT, 0);
    try (SharedArena arena = SharedArena.open(options)) {
      List<Extent> held = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        held.add(arena.allocate(SEGMENT, Use.RETAINED));
      }
      assertThat(arena.statistics().disk().segments()).isEqualTo(4);
      held.forEach(arena::free);
    }
    assertThat(Folders.contents(good)).isEmpty();
  }

  @Test
  void withNoFolderLeftTheErrorNamesThem() throws IOException {
    Path gone = folders.disk.resolve("gone");
    ArenaOptions options =
        new ArenaOptions(folders.arena, List.of(gone), SEGMENT, 0, 4L * SEGMENT, 0);
    try (SharedArena arena = SharedArena.open(options)) {
      assertThatThrownBy(() -> arena.allocate(1, Use.RETAINED))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining(gone + " does not exist");
      assertThat(Folders.contents(folders.arena)).isEmpty();
    }
  }

  @Test
  void aVanishedArenaFolderIsReported() throws IOException {
    ArenaOptions options = new ArenaOptions(folders.arena, List.of(), SEGMENT, SEGMENT, 0, 0);
    try (SharedArena arena = SharedArena.open(options)) {
      Files.delete(folders.arena);
      assertThatThrownBy(() -> arena.allocate(1, Use.RETAINED))
          .isInstanceOf(ArenaFullException.class)
          .hasMessageContaining(folders.arena + " does not exist");
    }
  }

  @Test
  void aRealTinyFileSystemIsUsedUpToItsMarginAndDiskAfterThat() throws Exception {
    try (TinyFileSystem tiny = TinyFileSystem.mount(16L * SEGMENT);
        SharedArena arena = SharedArena.open(options(tiny.path, 4L * SEGMENT))) {
      List<Extent> held = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        Extent extent = arena.allocate(SEGMENT, Use.RETAINED);
        Memory.setMemory(extent.address(), extent.length(), (byte) i);
        held.add(extent);
      }
      assertThat(arena.statistics().memory().segments()).isEqualTo(12);
      assertThat(arena.statistics().disk().segments()).isEqualTo(8);
      assertThat(tiny.path.toFile().getUsableSpace()).isGreaterThanOrEqualTo(3L * SEGMENT);
      held.forEach(arena::free);
    }
  }

  /** The earlier check finds room, as it may when two processes grow at once. */
  @Test
  void aRealFileSystemThatTurnsOutFullLeavesNoFile() throws Exception {
    try (TinyFileSystem tiny = TinyFileSystem.mount(10L * SEGMENT);
        SharedArena arena = SharedArena.open(options(tiny.path, 0), storage)) {
      Files.write(tiny.path.resolve("others"), new byte[7 * SEGMENT + SEGMENT / 2]);
      List<Extent> held = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        Extent extent = arena.allocate(SEGMENT, Use.RETAINED);
        Memory.setMemory(extent.address(), extent.length(), (byte) i);
        held.add(extent);
      }
      assertThat(arena.statistics().memory().segments()).isEqualTo(2);
      assertThat(arena.statistics().disk().segments()).isEqualTo(2);
      assertThat(Folders.contents(tiny.path)).as("others, two segments, two links").hasSize(5);
      assertThat(arena.refusal(MemoryKind.SHARED_MEMORY))
          .hasValueSatisfying(reason -> assertThat(reason).contains("No space left on device"));
      held.forEach(arena::free);
    }
  }

  @Test
  void aReadOnlyFileSystemIsReported() throws Exception {
    try (TinyFileSystem tiny = TinyFileSystem.mount(16L * SEGMENT)) {
      tiny.makeReadOnly();
      try (SharedArena arena = SharedArena.open(options(tiny.path, 0))) {
        assertThatThrownBy(() -> arena.allocate(1, Use.RETAINED))
            .isInstanceOf(ArenaFullException.class)
            .hasMessageContaining("Read-only file system");
      }
    }
    assertThat(Folders.contents(folders.disk)).isEmpty();
  }
}
