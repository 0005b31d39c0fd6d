package io.weft.spark;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.runtime.WeftExecutor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Contexts that start and stop in one JVM leak nothing. */
class LifecycleTest {
  private static final int TIMES = 5;

  @TempDir Path folder;

  @Test
  void startedAndStoppedAgainAndAgain() throws IOException {
    Set<Thread> before = weftThreads();
    for (int i = 0; i < TIMES; i++) {
      try (LocalSpark spark = LocalSpark.start(settings())) {
        assertThat(rows(spark)).isEqualTo(1000);
        assertThat(LocalSpark.count(ExchangeCounter.OUTPUTS_PUBLISHED)).isEqualTo(3);
        assertThat(files()).isNotEmpty();
      }
      assertThat(WeftExecutor.current()).isEmpty();
      assertThat(files()).isEmpty();
      assertThat(mappings()).isEmpty();
    }
    // Threads of earlier tests may have ended meanwhile.
    await()
        .atMost(Duration.ofSeconds(60))
        .untilAsserted(() -> assertThat(before).containsAll(weftThreads()));
  }

  private Map<String, String> settings() {
    return Map.of("spark.weft.memory.folder", folder.toString());
  }

  private static long rows(LocalSpark spark) {
    return spark
        .session()
        .range(0, 1000, 1, 3)
        .toDF()
        .repartition(3, col("id"))
        .toJavaRDD()
        .count();
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(path -> !path.equals(folder)).toList();
    }
  }

  /** Mappings of this process in the folder. */
  private List<String> mappings() throws IOException {
    try (Stream<String> lines = Files.lines(Path.of("/proc/self/maps"))) {
      return lines.filter(line -> line.contains(folder.toString())).toList();
    }
  }

  private static Set<Thread> weftThreads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("weft-"))
        .collect(Collectors.toSet());
  }
}
