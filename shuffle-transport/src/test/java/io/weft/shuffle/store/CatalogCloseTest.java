package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.peer.ExchangeCounters;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Closing a catalog frees memory that peers read, but does not allocate it again. */
class CatalogCloseTest {
  private static final int SEGMENT_BYTES = 64 << 10;

  @TempDir Path folder;

  @Test
  void noMemoryIsAllocatedAfterMemoryInUseIsFreed() throws IOException {
    AtomicInteger asked = new AtomicInteger();
    try (SharedArena arena =
        SharedArena.open(
            new ArenaOptions(folder, List.of(), SEGMENT_BYTES, 16 * SEGMENT_BYTES, 0, 0))) {
      BlockCatalog catalog =
          new BlockCatalog(
              folder,
              List.of(),
              arena,
              SEGMENT_BYTES,
              true,
              Optional.empty(),
              shuffle -> {
                // Close checks the leases before it frees memory.
                asked.incrementAndGet();
                assertRefuses(arena);
                return true;
              },
              new ExchangeCounters());
      try (MapOutputWriter writer = catalog.newMapOutput(new BlockKey(1, 0), 1)) {
        writer.commit(0, writer.allocate(1000), 1000, 1);
        writer.publish();
      }
      catalog.close();
      assertThat(asked).hasPositiveValue();
      assertThat(arena.statistics().usedBytes()).as("freed although leased").isZero();
      assertRefuses(arena);
    }
  }

  private static void assertRefuses(SharedArena arena) {
    assertThatThrownBy(() -> arena.allocate(64, Use.RETAINED))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("the arena is closed");
  }
}
