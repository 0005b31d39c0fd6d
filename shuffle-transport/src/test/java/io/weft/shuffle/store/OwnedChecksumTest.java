package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.ArenaOptions;
import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.memory.SharedArena;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.store.OwnedOutput.OwnedHold;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * When checksums are computed: for memory at the first request, for disk at once; only once each.
 */
class OwnedChecksumTest {
  private static final int SEGMENT_BYTES = 64 << 10;
  private static final BlockKey KEY = new BlockKey(1, 0);

  @TempDir Path folder;

  @Test
  void aBlockInMemoryHasNoneUntilItIsAskedFor() throws IOException {
    try (SharedArena arena = arena(SEGMENT_BYTES);
        BlockCatalog catalog = catalog(arena, true)) {
      long address = write(catalog);
      OwnedOutput output = find(catalog);
      assertThat(output.index().checksum(0)).as("in the index").isEqualTo(Checksum.NONE);
      int sum = Checksum.of(ByteBuffer.wrap(new byte[1000]));
      assertThat(output.checksum(0)).isEqualTo(sum);
      Memory.putByte(address, (byte) 1);
      assertThat(output.checksum(0)).as("not computed again").isEqualTo(sum);
      catalog.removeShuffle(1);
    }
  }

  @Test
  void aBlockOnDiskHasOneInItsIndex() throws IOException {
    try (SharedArena arena = arena(0);
        BlockCatalog catalog = catalog(arena, true)) {
      write(catalog);
      assertThat(find(catalog).index().checksum(0))
          .isEqualTo(Checksum.of(ByteBuffer.wrap(new byte[1000])));
      catalog.removeShuffle(1);
    }
  }

  @Test
  void withoutChecksumsABlockOnDiskHasNone() throws IOException {
    try (SharedArena arena = arena(0);
        BlockCatalog catalog = catalog(arena, false)) {
      write(catalog);
      assertThat(find(catalog).index().checksum(0)).isEqualTo(Checksum.NONE);
      catalog.removeShuffle(1);
    }
  }

  private SharedArena arena(long memoryBytes) throws IOException {
    Path disk = Files.createDirectories(folder.resolve("disk"));
    return SharedArena.open(
        new ArenaOptions(folder, List.of(disk), SEGMENT_BYTES, memoryBytes, SEGMENT_BYTES, 0));
  }

  private BlockCatalog catalog(SharedArena arena, boolean checksums) {
    return new BlockCatalog(
        folder,
        List.of(),
        arena,
        SEGMENT_BYTES,
        checksums,
        Optional.empty(),
        shuffle -> false,
        new ExchangeCounters());
  }

  /** Writes a chunk of 1,000 zeros. */
  private static long write(BlockCatalog catalog) throws IOException {
    try (MapOutputWriter writer = catalog.newMapOutput(KEY, 1)) {
      Extent extent = writer.allocate(1000);
      Memory.setMemory(extent.address(), 1000, (byte) 0);
      writer.commit(0, extent, 1000, 1);
      writer.publish();
      return extent.address();
    }
  }

  private static OwnedOutput find(BlockCatalog catalog) throws IOException {
    try (OwnedHold blocks = catalog.hold(1)) {
      return blocks.owned(KEY);
    }
  }
}
