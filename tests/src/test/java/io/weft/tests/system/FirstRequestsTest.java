package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/**
 * The readers of an executor do not all send their first request to the same peer, although Spark
 * lists the executors in the same order for all of them.
 */
class FirstRequestsTest {
  private static final int EXECUTORS = 4;
  private static final int READERS = 64;

  /** Readers of an executor that do not begin with the same of three peers by chance. */
  private static final int ENOUGH = 8;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  @TempDir private Path folder;

  @Test
  void readersOfAnExecutorBeginWithDifferentPeers() throws IOException {
    WeftCluster cluster =
        new WeftCluster(WORKSPACE)
            .executors(EXECUTORS, 512)
            .set("spark.weft.transport", "tcp")
            .set("spark.weft.trace.folder", folder.toString());
    try {
      cluster.start();
      assertThat(
              cluster
                  .session()
                  .range(0, 100_000, 1, 8)
                  .toDF()
                  .repartition(READERS)
                  .toJavaRDD()
                  .count())
          .isEqualTo(100_000);
      // They write the ends of their recordings.
      List<ExecutorProcess> ending = cluster.executors();
      cluster.stop();
      ending.forEach(executor -> executor.awaitEnd(Duration.ofMinutes(3)));
    } finally {
      cluster.stop();
    }
    List<Path> recordings;
    try (Stream<Path> files = Files.list(folder)) {
      recordings = files.filter(file -> file.toString().endsWith(".jfr")).toList();
    }
    assertThat(recordings).hasSize(EXECUTORS);
    int readers = 0;
    for (Path recording : recordings) {
      Map<Long, String> first = firstPeers(recording);
      readers += first.size();
      if (first.size() >= ENOUGH) {
        // With the same order for all it would be one.
        assertThat(Set.copyOf(first.values())).as("%s: %s", recording, first).hasSizeGreaterThan(1);
      }
    }
    assertThat(readers).isEqualTo(READERS);
  }

  /** For each reader of an executor, the peer that it asked first. */
  private static Map<Long, String> firstPeers(Path recording) throws IOException {
    Map<Long, RecordedEvent> first = new HashMap<>();
    for (RecordedEvent event : RecordingFile.readAllEvents(recording)) {
      if (event.getEventType().getName().equals("weft.Fetch")) {
        first.merge(
            event.getLong("reader"),
            event,
            (one, other) -> one.getStartTime().isAfter(other.getStartTime()) ? other : one);
      }
    }
    return first.entrySet().stream()
        .collect(
            Collectors.toMap(
                Map.Entry::getKey,
                entry -> entry.getValue().getString("peer"),
                (one, other) -> one,
                TreeMap::new));
  }
}
