package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.SpillPolicy.Use;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.constraints.Size;

/**
 * Compares the arena with a plain list of extents, for any sequence of allocations, trims and
 * frees.
 */
class SharedArenaModelTest {
  private static final int SEGMENT = 16 << 10;
  private static final long MEMORY = 4 * SEGMENT;
  private static final long DISK = 2 * SEGMENT;

  enum Kind {
    ALLOCATE,
    TRIM,
    FREE
  }

  /** The pick selects one of the allocated extents. */
  record Operation(Kind kind, int bytes, int pick) {}

  record Held(Extent extent, byte pattern) {}

  @Provide
  Arbitrary<Operation> operations() {
    Arbitrary<Kind> kinds = Arbitraries.of(Kind.ALLOCATE, Kind.ALLOCATE, Kind.TRIM, Kind.FREE);
    Arbitrary<Integer> sizes =
        Arbitraries.frequencyOf(
            Tuple.of(6, Arbitraries.integers().between(1, 3000)),
            Tuple.of(2, Arbitraries.integers().between(1, SEGMENT)),
            Tuple.of(1, Arbitraries.integers().between(SEGMENT, 3 * SEGMENT)));
    return Combinators.combine(kinds, sizes, Arbitraries.integers().between(0, 1 << 20))
        .as(Operation::new);
  }

  @Property(tries = 300)
  void theArenaAgreesWithTheModel(
      @ForAll @Size(max = 150) List<@From("operations") Operation> operations) throws IOException {
    try (Folders folders = new Folders()) {
      ArenaOptions options =
          new ArenaOptions(folders.arena, List.of(folders.disk), SEGMENT, MEMORY, DISK, 0);
      try (SharedArena arena = SharedArena.open(options)) {
        List<Held> held = new ArrayList<>();
        for (Operation operation : operations) {
          apply(arena, held, operation);
          checkCounters(arena, held);
          checkNoOverlap(held);
        }
        held.forEach(one -> free(arena, one));
        checkEverySegmentIsWholeAgain(arena);
      }
      assertThat(Folders.contents(folders.arena)).isEmpty();
      assertThat(Folders.contents(folders.disk)).isEmpty();
      assertThat(Folders.mappings(folders.arena)).isZero();
      assertThat(Folders.mappings(folders.disk)).isZero();
    }
  }

  private static void apply(SharedArena arena, List<Held> held, Operation operation)
      throws IOException {
    if (operation.kind == Kind.ALLOCATE) {
      allocate(arena, held, operation.bytes);
    } else if (!held.isEmpty()) {
      Held one = held.remove(operation.pick % held.size());
      if (operation.kind == Kind.FREE) {
        free(arena, one);
      } else {
        held.add(trim(arena, one, 1 + operation.pick % one.extent.length()));
      }
    }
  }

  private static void allocate(SharedArena arena, List<Held> held, int bytes) throws IOException {
    long usedBefore = arena.statistics().usedBytes();
    try {
      Extent extent = arena.allocate(bytes, Use.RETAINED);
      assertThat(extent.length()).isBetween((long) bytes, bytes + 63L);
      assertThat(extent.length() % 64).isZero();
      assertThat(extent.offset() % 64).isZero();
      byte pattern = (byte) held.size();
      Memory.setMemory(extent.address(), extent.length(), pattern);
      held.add(new Held(extent, pattern));
    } catch (ArenaFullException e) {
      assertThat(arena.statistics().usedBytes()).isEqualTo(usedBefore);
      // A request of at most a segment fits if less than half of each segment is used.
      assertThat(bytes > SEGMENT || usedBefore > 0).isTrue();
    }
  }

  private static Held trim(SharedArena arena, Held one, long bytes) {
    Extent kept = arena.trim(one.extent, bytes);
    assertThat(kept.length()).isEqualTo((bytes + 63) / 64 * 64);
    assertThat(kept.address()).isEqualTo(one.extent.address());
    assertThat(kept.segment()).isEqualTo(one.extent.segment());
    return new Held(kept, one.pattern);
  }

  private static void free(SharedArena arena, Held one) {
    byte[] content = new byte[(int) one.extent.length()];
    Memory.copyTo(one.extent.address(), content, Memory.BYTE_ARRAY, content.length);
    byte[] expected = new byte[content.length];
    Arrays.fill(expected, one.pattern);
    assertThat(Arrays.mismatch(content, expected)).isEqualTo(-1);
    arena.free(one.extent);
  }

  private static void checkCounters(SharedArena arena, List<Held> held) {
    ArenaStatistics now = arena.statistics();
    assertThat(now.extents()).isEqualTo(held.size());
    for (MemoryKind kind : MemoryKind.values()) {
      long used =
          held.stream()
              .filter(one -> one.extent.kind() == kind)
              .mapToLong(one -> one.extent.length())
              .sum();
      assertThat(now.of(kind).usedBytes()).isEqualTo(used);
      assertThat(now.of(kind).reservedBytes()).isGreaterThanOrEqualTo(used);
    }
    assertThat(now.memory().reservedBytes()).isLessThanOrEqualTo(MEMORY);
    assertThat(now.disk().reservedBytes()).isLessThanOrEqualTo(DISK);
    assertThat(now.peakUsedBytes()).isGreaterThanOrEqualTo(now.usedBytes());
  }

  private static void checkNoOverlap(List<Held> held) {
    List<Extent> sorted =
        held.stream()
            .map(Held::extent)
            .sorted((a, b) -> Long.compare(a.address(), b.address()))
            .toList();
    for (int i = 1; i < sorted.size(); i++) {
      Extent before = sorted.get(i - 1);
      assertThat(before.address() + before.length()).isLessThanOrEqualTo(sorted.get(i).address());
    }
  }

  /** Without extents each segment is one free block, so that it can be allocated as a whole. */
  private static void checkEverySegmentIsWholeAgain(SharedArena arena) throws IOException {
    ArenaStatistics before = arena.statistics();
    assertThat(before.usedBytes()).isZero();
    assertThat(before.reservedBytes()).isEqualTo((long) before.segments() * SEGMENT);
    List<Extent> whole = new ArrayList<>();
    for (int i = 0; i < before.memory().segments(); i++) {
      whole.add(arena.allocate(SEGMENT, Use.RETAINED));
    }
    assertThat(arena.statistics().freshBytes()).isEqualTo(before.freshBytes());
    whole.forEach(arena::free);
  }
}
