package io.weft.shuffle.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Resources that a lease protects besides its folder. */
class LeasedFolderTest {
  @TempDir Path executor;

  /**
   * The resource is freed after the lease, so that no process can lock it, and before the folder.
   */
  @Test
  void theResourceIsFreedBetweenTheLeaseAndTheFolder() throws IOException {
    LeasedFolder folder = LeasedFolder.create(executor, "lent");
    Path file = folder.createFile("rank-0");
    List<Boolean> there = new ArrayList<>();
    boolean gone =
        folder.removeUnlessLocked(
            () -> there.addAll(List.of(Files.exists(folder.lease()), Files.exists(file))));
    assertThat(gone).isTrue();
    assertThat(there).containsExactly(false, true);
    assertThat(executor).isEmptyDirectory();
  }

  @Test
  void theFolderIsRemovedEvenIfFreeingFails() throws IOException {
    LeasedFolder folder = LeasedFolder.create(executor, "lent");
    assertThatThrownBy(
            () ->
                folder.removeUnlessLocked(
                    () -> {
                      throw new IllegalStateException("as the test asked");
                    }))
        .hasMessage("as the test asked");
    assertThat(executor).isEmptyDirectory();
  }
}
