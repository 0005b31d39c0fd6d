package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.store.LeasedFolder;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LentFoldersTest {
  @TempDir Path parent;

  /** The driver gave an export up while a rank still wrote its shard. */
  @Test
  void aFolderThatIsKeptAfterItsReleaseIsRemoved() throws IOException {
    AtomicInteger freed = new AtomicInteger();
    LentFolders.begin();
    LentFolders.release(7);
    LeasedFolder folder = LeasedFolder.create(parent, "late");
    LentFolders.keep(7, folder, freed::incrementAndGet);
    await().untilAsserted(() -> assertThat(folder.path()).doesNotExist());
    assertThat(freed).hasPositiveValue();
  }

  @Test
  void theNextApplicationMayUseTheNumberAgain() throws IOException {
    LentFolders.release(7);
    LentFolders.begin();
    LeasedFolder folder = LeasedFolder.create(parent, "kept");
    LentFolders.keep(7, folder);
    assertThat(folder.path()).exists();
    LentFolders.release(7);
    assertThat(folder.path()).doesNotExist();
  }
}
