package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LifeTest {
  private static final int QUESTIONS = 5000;

  @TempDir Path folder;

  /** Locks belong to the process: ranks of one executor ask for the same one at the same time. */
  @Test
  void ranksOfOneProcessMayAskAtOnce() throws Exception {
    Path lock = Files.createFile(folder.resolve("lock"));
    Callable<Integer> asking =
        () -> {
          int ended = 0;
          try (Life life = Life.ofOther(lock)) {
            for (int i = 0; i < QUESTIONS; i++) {
              ended += life.hasEnded() ? 1 : 0;
            }
          }
          return ended;
        };
    ExecutorService threads = Executors.newFixedThreadPool(2);
    try {
      List<Future<Integer>> all = new ArrayList<>(threads.invokeAll(List.of(asking, asking)));
      for (Future<Integer> each : all) {
        assertThat(each.get(1, TimeUnit.MINUTES)).isPositive();
      }
    } finally {
      threads.shutdownNow();
    }
  }
}
