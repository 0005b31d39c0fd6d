package io.weft.shuffle.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.ArenaOptions;
import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Compression of chunks while shared memory is full. */
class BlockCompressorTest {
  private static final long SEGMENT = 1 << 20;

  @TempDir Path folder;

  private SharedArena open() throws Exception {
    Path memory = Files.createDirectories(folder.resolve("memory"));
    Path disk = Files.createDirectories(folder.resolve("disk"));
    return SharedArena.open(
        new ArenaOptions(memory, List.of(disk), SEGMENT, SEGMENT, 4 * SEGMENT, 0));
  }

  @Test
  void compressionNeverAllocatesOnDisk() throws Exception {
    try (SharedArena arena = open()) {
      BlockCompressor compressor = new BlockCompressor(arena);
      ByteBuffer chunk = ByteBuffer.allocateDirect(200_000);
      BlockCompressor.Compressed compressed = compressor.compress(Compression.LZ4, 1, chunk);
      assertThat(compressed.extent().kind()).isEqualTo(MemoryKind.SHARED_MEMORY);
      compressor.free(compressed);
      List<Extent> all = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        all.add(arena.allocate(SEGMENT / 8, Use.RETAINED));
      }
      assertThat(all).extracting(Extent::kind).containsOnly(MemoryKind.SHARED_MEMORY);
      for (int shuffle = 2; shuffle < 10; shuffle++) {
        assertThat(compressor.compress(Compression.LZ4, shuffle, chunk)).isNull();
      }
      assertThat(arena.statistics().disk().segments()).isZero();
      assertThat(arena.statistics().memory().usedBytes()).isEqualTo(SEGMENT);
      all.forEach(arena::free);
    }
  }
}
