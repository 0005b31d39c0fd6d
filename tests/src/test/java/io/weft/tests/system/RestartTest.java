package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.Answers;
import io.weft.tests.support.Rows;
import io.weft.tests.support.Sessions;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import io.weft.tests.workload.Tables;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Applications that follow each other in one JVM: none leaves a thread, a file, a mapping or a
 * descriptor to the next.
 */
@Tag("slow")
class RestartTest {
  private static final int ROUNDS = 5;

  /** Descriptors that Spark's own pools may open between two rounds. */
  private static final long SLACK = 16;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private static long descriptors;

  @BeforeAll
  static void prepare() {
    Answers.prepare(Queries.compact());
  }

  @RepeatedTest(ROUNDS)
  void startsWorksAndEnds(RepetitionInfo round) throws Exception {
    SparkSession session = Sessions.weft(WORKSPACE, "local[2]", Map.of());
    try {
      Tables.register(session, Answers.tables());
      Queries.configure(session, true);
      for (Query query : Queries.compact().subList(0, 4)) {
        Rows.assertSame(query.name(), Answers.of(query), query.run(session));
      }
      assertThat(Workspace.threads()).as("threads of a running application").isNotEmpty();
      assertThat(WORKSPACE.mappings()).as("mapped segments of a running application").isNotEmpty();
    } finally {
      session.stop();
    }
    Awaitility.await("all that round " + round.getCurrentRepetition() + " opened is closed")
        .atMost(Duration.ofSeconds(20))
        .untilAsserted(
            () -> {
              assertThat(Workspace.threads()).isEmpty();
              assertThat(WORKSPACE.mappings()).isEmpty();
              assertThat(WORKSPACE.files()).isEmpty();
            });
    checkDescriptors(round.getCurrentRepetition());
  }

  private static void checkDescriptors(int round) throws Exception {
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      long now = open.count();
      if (round == 2) {
        descriptors = now;
      } else if (round > 2) {
        assertThat(now).as("open descriptors after round " + round).isLessThan(descriptors + SLACK);
      }
    }
  }
}
