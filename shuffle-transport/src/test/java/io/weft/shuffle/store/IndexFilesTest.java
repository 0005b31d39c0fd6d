package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.weft.memory.SettingNames;
import io.weft.support.Deletion;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Index files in the executor's folder, and in a local folder if it is full. */
class IndexFilesTest {
  private static final Path SHARED_MEMORY = Path.of("/dev/shm");
  private static final BlockKey KEY = new BlockKey(1, 2);

  @TempDir Path disk;

  private Path shared;
  private ExecutorFolder executor;

  @BeforeEach
  void openFolder() throws IOException {
    assumeTrue(Files.isWritable(SHARED_MEMORY), "no " + SHARED_MEMORY + " to write to");
    shared = Files.createTempDirectory(SHARED_MEMORY, "tests-of-weft-");
    executor =
        ExecutorFolder.create(
            new HostRoot(shared, true, Optional.empty()), "app-1-0123abcd", "1", false);
  }

  @AfterEach
  void removeFolder() throws IOException {
    if (executor != null) {
      executor.close();
      Files.delete(shared);
    }
  }

  @Test
  void isInTheFolderWhileItHasSpace() throws IOException {
    IndexFiles files = new IndexFiles(executor.path(), List.of(disk), SettingNames.OWN);
    files.write(output());
    assertThat(executor.path().resolve(MapOutputFormat.fileName(KEY))).isRegularFile();
    assertThat(IndexFiles.read(executor.path(), KEY).key()).isEqualTo(KEY);
    files.delete(KEY);
    assertThat(IndexFiles.exists(executor.path(), KEY)).isFalse();
  }

  @Test
  void isOnDiskWhenTheFolderIsFull() throws IOException {
    IndexFiles files = new IndexFiles(executor.path(), List.of(disk), SettingNames.OWN);
    blockTheFolder();
    files.write(output());
    assertThat(executor.path().resolve(MapOutputFormat.fileName(KEY))).doesNotExist();
    assertThat(IndexFiles.exists(executor.path(), KEY)).isTrue();
    assertThat(IndexFiles.read(executor.path(), KEY).partitions()).isEqualTo(3);
    files.delete(KEY);
    assertThat(IndexFiles.exists(executor.path(), KEY)).isFalse();
    assertThatThrownBy(() -> IndexFiles.read(executor.path(), KEY))
        .isInstanceOf(NoSuchFileException.class);
  }

  @Test
  void theFolderOnDiskIsFoundAgainAfterTheExecutorsFolderWasDeleted() throws IOException {
    IndexFiles files = new IndexFiles(executor.path(), List.of(disk), SettingNames.OWN);
    Deletion.delete(executor.path());
    executor.restore();
    blockTheFolder();
    files.write(output());
    assertThat(IndexFiles.read(executor.path(), KEY).key()).isEqualTo(KEY);
    executor.close();
    assertThat(disk).isEmptyDirectory();
  }

  @Test
  void theFolderOnDiskGoesWithTheExecutors() throws IOException {
    IndexFiles files = new IndexFiles(executor.path(), List.of(disk), SettingNames.OWN);
    blockTheFolder();
    files.write(output());
    assertThat(disk).isNotEmptyDirectory();
    executor.close();
    assertThat(disk).isEmptyDirectory();
  }

  @Test
  void withoutALocalFolderTheErrorNamesThePlaceAndTheRemedy() throws IOException {
    IndexFiles files = new IndexFiles(executor.path(), List.of(shared), SettingNames.OWN);
    blockTheFolder();
    assertThatThrownBy(() -> files.write(output()))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("the index of shuffle 1 map 2")
        .hasMessageContaining(executor.path().toString())
        .hasMessageContaining("diskFolders");
  }

  /** Makes writing fail: a folder has the name of the file. */
  private void blockTheFolder() throws IOException {
    Path name = executor.path().resolve("unpublished-" + MapOutputFormat.fileName(KEY));
    Files.createFile(Files.createDirectory(name).resolve("in the way"));
  }

  private static MapOutput output() {
    return new MapOutput(
        KEY, 4096, new int[4], new int[0], new int[0], new int[0], new long[0], new long[0]);
  }
}
