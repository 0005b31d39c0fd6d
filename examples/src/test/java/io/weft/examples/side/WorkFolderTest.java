package io.weft.examples.side;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WorkFolderTest {
  @TempDir private Path elsewhere;

  @Test
  void closeDeletesTheFolderButNotLinkTargets() throws IOException {
    Path precious = Files.writeString(elsewhere.resolve("precious"), "keep me");
    WorkFolder work = WorkFolder.create("weft-test-", false);
    Files.writeString(work.folder("deep").resolve("file"), "gone");
    Files.createSymbolicLink(work.path().resolve("file-link"), precious);
    Files.createSymbolicLink(work.path().resolve("folder-link"), elsewhere);
    work.close();
    assertThat(work.path()).doesNotExist();
    assertThat(precious).hasContent("keep me");
  }

  @Test
  void staysIfRequested() throws IOException {
    WorkFolder work = WorkFolder.create("weft-test-", true);
    work.close();
    assertThat(work.path()).isDirectory();
    WorkFolder.delete(work.path());
  }
}
