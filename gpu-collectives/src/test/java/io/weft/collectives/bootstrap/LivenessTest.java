package io.weft.collectives.bootstrap;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.bootstrap.RankFolder.Liveness;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LivenessTest {
  @TempDir Path folder;

  /** Locks belong to the process: another rank of this process may be testing the same lock. */
  @Test
  void ownerIsAliveWhileAnotherRankOfThisProcessTestsTheLock() throws Exception {
    Path file = Files.createFile(folder.resolve("lock"));
    try (Liveness life = Liveness.ofOther(file);
        FileChannel other = FileChannel.open(file, StandardOpenOption.READ)) {
      try (FileLock asking = other.lock(0, Long.MAX_VALUE, true)) {
        assertThat(asking.isValid()).isTrue();
        assertThat(life.hasEnded()).isFalse();
      }
      assertThat(life.hasEnded()).isTrue();
    }
  }
}
