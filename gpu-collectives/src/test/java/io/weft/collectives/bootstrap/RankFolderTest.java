package io.weft.collectives.bootstrap;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.UniqueId;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the files that a rank leaves, and those of other ranks that it deletes. */
class RankFolderTest {
  @TempDir Path parent;

  /** A folder as a dead rank of another process leaves it: the lock file is not locked. */
  private Path unlocked(String name) throws IOException {
    Path folder = Files.createDirectory(parent.resolve(name));
    Files.createFile(folder.resolve(RankFolder.LOCK));
    return folder;
  }

  @Test
  void foldersOfDeadProcessesAreDeleted() throws IOException {
    Path dead = unlocked("communicator-dead-0");
    Path deadDraft = unlocked("draft-dead-0");
    Instant longAgo = Instant.now().minus(Duration.ofHours(1));
    Files.setLastModifiedTime(deadDraft, FileTime.from(longAgo));
    try (RankFolder folder = RankFolder.create(parent, UniqueId.create(), 0)) {
      assertThat(folder.path()).exists();
      assertThat(dead).doesNotExist();
      assertThat(deadDraft).doesNotExist();
    }
  }

  /** Between creating and locking its folder another process counts as alive. */
  @Test
  void foldersBeingCreatedStay() throws IOException {
    Path draft = unlocked("draft-young-0");
    try (RankFolder folder = RankFolder.create(parent, UniqueId.create(), 0)) {
      assertThat(folder.path().resolve(RankFolder.TOKEN)).hasContent(folder.token());
      assertThat(draft).exists();
    }
  }

  @Test
  void closeDeletesTheFolder() throws IOException {
    RankFolder.create(parent, UniqueId.create(), 3).close();
    assertThat(parent).isEmptyDirectory();
  }
}
