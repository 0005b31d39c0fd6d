package io.weft.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a lease keeps beside its folder. */
class LentFolderTest {
  @TempDir Path executor;

  /** Nobody gets a lock on the lease any more, and what cannot be removed does not matter yet. */
  @Test
  void whatTheLeaseKeepsGoesBetweenItAndTheFolder() throws IOException {
    LentFolder folder = LentFolder.create(executor, "lent");
    Path file = folder.createFile("rank-0");
    List<Boolean> there = new ArrayList<>();
    boolean gone =
        folder.removeUnlessHeld(
            () -> there.addAll(List.of(Files.exists(folder.lease()), Files.exists(file))));
    assertThat(gone).isTrue();
    assertThat(there).containsExactly(false, true);
    assertThat(executor).isEmptyDirectory();
  }

  @Test
  void theFolderGoesAlsoWhereTheRestFails() throws IOException {
    LentFolder folder = LentFolder.create(executor, "lent");
    assertThatThrownBy(
            () ->
                folder.removeUnlessHeld(
                    () -> {
                      throw new IllegalStateException("as the test asked");
                    }))
        .hasMessage("as the test asked");
    assertThat(executor).isEmptyDirectory();
  }
}
