package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.support.Answers;
import io.weft.tests.support.Rows;
import io.weft.tests.support.Sessions;
import io.weft.tests.support.Workspace;
import io.weft.tests.workload.Queries;
import io.weft.tests.workload.Query;
import io.weft.tests.workload.Tables;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Applications that run one after another in one JVM: none leaves a thread, a file, a mapping or a
 * descriptor.
 */
class RestartTest {
  private static final int ROUNDS = 5;

  /** Descriptors of one kind that Spark's own pools may open between two rounds. */
  private static final long SLACK = 8;

  @RegisterExtension static final Workspace WORKSPACE = new Workspace();

  private static Map<String, Long> descriptors;

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
    Awaitility.await("everything that round " + round.getCurrentRepetition() + " opened is closed")
        .atMost(Duration.ofMinutes(3))
        .untilAsserted(
            () -> {
              assertThat(Workspace.threads()).isEmpty();
              assertThat(WORKSPACE.mappings()).isEmpty();
              assertThat(WORKSPACE.files()).isEmpty();
            });
    checkDescriptors(round.getCurrentRepetition());
  }

  /** Spark's event loops close their pollers some seconds after the context has stopped. */
  private static void checkDescriptors(int round) throws IOException {
    if (round == 2) {
      descriptors = openDescriptors();
    } else if (round > 2) {
      Awaitility.await("no more open descriptors than after round 2, " + descriptors)
          .atMost(Duration.ofMinutes(3))
          .untilAsserted(() -> assertThat(more(openDescriptors())).isEmpty());
    }
  }

  /** Descriptors that are open now beyond those after round 2, with their counts. */
  private static Map<String, Long> more(Map<String, Long> now) {
    Map<String, Long> more = new TreeMap<>();
    now.forEach(
        (what, count) -> {
          long rise = count - descriptors.getOrDefault(what, 0L);
          if (rise > SLACK) {
            more.put(what, rise);
          }
        });
    return more;
  }

  /** The open descriptors of this process, without numbers, with their counts. */
  private static Map<String, Long> openDescriptors() throws IOException {
    Map<String, Long> open = new TreeMap<>();
    try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"))) {
      for (Path descriptor : descriptors.toList()) {
        try {
          String what = Files.readSymbolicLink(descriptor).toString();
          open.merge(what.replaceAll("[0-9]+", "#"), 1L, Long::sum);
        } catch (NoSuchFileException e) {
          // Closed since the listing, like the descriptor of the listing itself.
        }
      }
    }
    return open;
  }
}
