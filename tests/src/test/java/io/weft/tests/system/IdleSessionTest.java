package io.weft.tests.system;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.ExecutorProcess;
import io.weft.tests.support.Folders;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.util.stream.Stream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A session without work gives its memory back, and its next shuffle works. */
class IdleSessionTest {
  private static final int ROWS = 400_000;

  /** Tokens and locks of the executors. */
  private static final long CLOSE_TO_NOTHING = 16 << 10;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER =
      new WeftCluster(WORKSPACE)
          .set("spark.weft.memory.segmentSize", "4m")
          .set("spark.weft.memory.idleTime", "2s");

  @Test
  void anIdleSessionHoldsNoMemory() {
    for (int round = 1; round <= 2; round++) {
      long rows =
          CLUSTER
              .session()
              .sql("SELECT id, XXHASH64(id) AS h FROM RANGE(0, " + ROWS + ", 1, 4)")
              .repartition(6, col("id"))
              .javaRDD()
              .count();
      assertThat(rows).isEqualTo(ROWS);
      assertThat(bytesInSharedMemory()).as("bytes of files").isGreaterThan(8 << 20);
      if (round == 2) {
        // In the first round an executor asks the driver to collect, which it does only at times.
        CLUSTER.awaitNothingUsed();
      }
      Awaitility.await("memory that is given back")
          .atMost(Duration.ofMinutes(3))
          .untilAsserted(
              () -> {
                assertThat(bytesInSharedMemory()).as("bytes of files").isLessThan(CLOSE_TO_NOTHING);
                assertThat(mappedSegments()).as("mappings, also of deleted files").isZero();
              });
      assertThat(CLUSTER.sum("memoryReserved")).isZero();
    }
  }

  private static long bytesInSharedMemory() {
    return Folders.tree(WORKSPACE.sharedMemory()).stream()
        .filter(file -> Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS))
        .mapToLong(file -> file.toFile().length())
        .sum();
  }

  private static long mappedSegments() throws IOException {
    long mapped = 0;
    for (ExecutorProcess executor : CLUSTER.executors()) {
      try (Stream<String> maps = Files.lines(Path.of("/proc/" + executor.pid() + "/maps"))) {
        mapped += maps.filter(line -> line.contains("/segment-")).count();
      }
    }
    return mapped;
  }
}
