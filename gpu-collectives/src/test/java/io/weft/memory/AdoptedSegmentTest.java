package io.weft.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.memory.SharedArena.Range;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Segments of other arenas, which this one takes over. */
class AdoptedSegmentTest {
  private static final int SEGMENT_BYTES = 64 << 10;
  private static final Path OTHER_FILE_SYSTEM = Path.of("/dev/shm");
  private static final List<Range> RANGES = List.of(new Range(0, 1000), new Range(1024, 64));

  @TempDir Path temporary;

  private Path own;
  private Path disk;

  @BeforeEach
  void makeFolders() throws IOException {
    own = Files.createDirectory(temporary.resolve("own"));
    disk = Files.createDirectory(temporary.resolve("disk"));
  }

  private SharedArena arena() throws IOException {
    return SharedArena.open(
        new ArenaOptions(
            own, List.of(disk), SEGMENT_BYTES, 2 * SEGMENT_BYTES, 2 * SEGMENT_BYTES, 0));
  }

  private static Path segment(Path file) throws IOException {
    try (RandomAccessFile open = new RandomAccessFile(file.toFile(), "rw")) {
      open.setLength(SEGMENT_BYTES);
    }
    return file;
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void atMostAWholeBudgetIsAdopted(boolean exempt) throws IOException {
    try (SharedArena arena = arena()) {
      List<Extent> first = arena.adopt(segment(temporary.resolve("a")), RANGES, exempt);
      List<Extent> second = arena.adopt(segment(temporary.resolve("b")), RANGES, exempt);
      Path third = segment(temporary.resolve("c"));
      assertThatThrownBy(() -> arena.adopt(third, RANGES, exempt))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("whole budget");
      assertThat(arena.statistics().memory().reservedBytes()).isEqualTo(2 * SEGMENT_BYTES);
      assertThat(files(own)).hasSize(2);
      first.forEach(arena::free);
      List<Extent> last = arena.adopt(third, RANGES, exempt);
      second.forEach(arena::free);
      last.forEach(arena::free);
      assertThat(arena.statistics().memory().reservedBytes()).isZero();
    }
  }

  @Test
  void aRangeBehindTheEndIsAnError() throws IOException {
    try (SharedArena arena = arena()) {
      Path source = segment(temporary.resolve("a"));
      List<Range> ranges = List.of(new Range(SEGMENT_BYTES - 64, 65));
      assertThatThrownBy(() -> arena.adopt(source, ranges, false)).isInstanceOf(IOException.class);
      assertThat(files(own)).isEmpty();
    }
  }

  @Test
  void aFileOnAnotherFileSystemLeavesNothing() throws IOException {
    Assumptions.assumeTrue(
        Files.isWritable(OTHER_FILE_SYSTEM)
            && !Files.getAttribute(OTHER_FILE_SYSTEM, "unix:dev")
                .equals(Files.getAttribute(disk, "unix:dev")),
        "needs two file systems");
    Path target = segment(Files.createTempFile(OTHER_FILE_SYSTEM, "weft-test-", ""));
    try (SharedArena arena = arena()) {
      Path source = Files.createSymbolicLink(temporary.resolve("a"), target);
      assertThatThrownBy(() -> arena.adopt(source, RANGES, false))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("file system");
      assertThat(files(own)).isEmpty();
      assertThat(disk).isEmptyDirectory();
    } finally {
      Files.delete(target);
    }
  }

  private static List<Path> files(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.toList();
    }
  }
}
