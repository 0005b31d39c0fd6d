package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.shuffle.peer.ExchangeCounters;
import io.weft.shuffle.store.FolderAdoption.Adopted;
import io.weft.shuffle.store.FolderAdoption.Options;
import io.weft.shuffle.store.FolderAdoption.Verify;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Takes over the files of an executor that are in a folder without a living owner. */
class FolderAdoptionTest {
  private static final int SEGMENT_BYTES = 64 << 10;
  private static final int OUTPUTS = 3;
  private static final Options OPTIONS = new Options(Verify.NONE, true, false);

  @TempDir Path temporary;

  private Path left;
  private Path own;

  @BeforeEach
  void leaveOutputs() throws IOException {
    Path writer = Files.createDirectory(temporary.resolve("writer"));
    own = Files.createDirectory(temporary.resolve("own"));
    left = Files.createDirectory(temporary.resolve("1-0123abcd"));
    for (String name : List.of("alive", "token", "adoptable")) {
      Files.createFile(left.resolve(name));
    }
    try (SharedArena arena = arena(writer);
        BlockCatalog catalog = catalog(writer, arena)) {
      for (int map = 0; map < OUTPUTS; map++) {
        try (MapOutputWriter output = catalog.newMapOutput(new BlockKey(1, map), 1)) {
          output.commit(0, output.allocate(1000), 1000, 1);
          output.publish();
        }
      }
      for (Path file : FolderSweep.entries(writer)) {
        Files.copy(file, left.resolve(file.getFileName()));
      }
    }
  }

  @Test
  void onlyWhatIsNeededIsAdopted() throws IOException {
    try (SharedArena arena = arena(own);
        BlockCatalog catalog = catalog(own, arena);
        DeadFolder dead = DeadFolder.seize(left).orElseThrow()) {
      assertThat(DeadFolder.hasOutputs(left)).isTrue();
      assertThat(DeadFolder.hasOutputs(own)).isFalse();
      assertThat(dead.outputs()).hasSize(OUTPUTS);
      Adopted adopted = new Adopted();
      new FolderAdoption(catalog, arena, OPTIONS)
          .adopt(dead, List.of(new BlockKey(1, 1), new BlockKey(1, 9)), adopted);
      assertThat(adopted.all()).containsExactly(new BlockKey(1, 1));
      assertThat(adopted.refusals()).singleElement().asString().contains("map 9");
      assertThat(catalog.outputs()).containsExactly(new BlockKey(1, 1));
    }
  }

  /** No executor of the application is left, but a later one may start within the time. */
  @Test
  void aFolderIsKeptForALaterExecutor() throws IOException {
    Path adoptable = left.resolve("adoptable");
    Files.writeString(adoptable, "60000");
    FolderSweep.executor(left);
    assertThat(left).exists();
    FileTime old = FileTime.from(Instant.now().minusSeconds(90));
    Files.setLastModifiedTime(adoptable, old);
    FolderSweep.executor(left);
    assertThat(left).doesNotExist();
  }

  /** A later executor of the application may replace both. */
  @Test
  void aFolderIsKeptWhenAnotherExecutorEnds() throws IOException {
    Files.writeString(left.resolve("adoptable"), "60000");
    FolderSweep.atExit(List.of(left), false);
    assertThat(left).exists();
    FolderSweep.atExit(List.of(left), true);
    assertThat(left).doesNotExist();
  }

  @Test
  void nothingIsKeptWhenTheDriverEnds() throws IOException {
    Files.writeString(left.resolve("adoptable"), "60000");
    FolderSweep.atEnd(left);
    assertThat(left).doesNotExist();
  }

  /** A failure of one output must not hide from the caller that others are published. */
  @Test
  void anOutputThatFailsIsRefused() throws IOException {
    try (SharedArena arena = arena(own);
        DeadFolder dead = DeadFolder.seize(left).orElseThrow()) {
      BlockCatalog closed = catalog(own, arena);
      closed.close();
      Adopted adopted = new Adopted();
      new FolderAdoption(closed, arena, OPTIONS).adopt(dead, dead.outputs(), adopted);
      assertThat(adopted.all()).isEmpty();
      assertThat(adopted.refusals()).hasSize(OUTPUTS);
      assertThat(arena.statistics().usedBytes()).isZero();
    }
  }

  private static SharedArena arena(Path folder) throws IOException {
    return SharedArena.open(
        new ArenaOptions(folder, List.of(), SEGMENT_BYTES, 16 * SEGMENT_BYTES, 0, 0));
  }

  private static BlockCatalog catalog(Path folder, SharedArena arena) {
    return new BlockCatalog(
        folder,
        List.of(),
        arena,
        SEGMENT_BYTES,
        true,
        Optional.empty(),
        shuffle -> false,
        new ExchangeCounters());
  }
}
