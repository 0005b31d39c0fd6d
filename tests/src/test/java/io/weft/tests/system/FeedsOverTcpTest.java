package io.weft.tests.system;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.tests.application.FeedJob;
import io.weft.tests.application.FeedJob.Answer;
import io.weft.tests.support.WeftCluster;
import io.weft.tests.support.Workspace;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A feed into two ranks whose batches come over the network, each of them once. */
class FeedsOverTcpTest {
  private static final long SUM = (long) FeedJob.ROWS * (FeedJob.ROWS - 1) / 2;

  @RegisterExtension
  @Order(1)
  static final Workspace WORKSPACE = new Workspace();

  @RegisterExtension
  @Order(2)
  static final WeftCluster CLUSTER = new WeftCluster(WORKSPACE).set("spark.weft.transport", "tcp");

  @Test
  void ranksReadWhatTheNetworkDelivered() throws Exception {
    CLUSTER.awaitExecutors();
    String notes = Files.createTempDirectory(WORKSPACE.folder(), "notes-").toString();
    List<Answer> answers = new FeedJob(notes, false).run(CLUSTER.session());
    List<Long> ids = new ArrayList<>();
    answers.forEach(answer -> ids.addAll(answer.ids()));
    assertThat(ids)
        .containsExactlyInAnyOrderElementsOf(LongStream.range(0, FeedJob.ROWS).boxed().toList());
    assertThat(answers).extracting(Answer::sum).containsOnly(2 * SUM);
    assertThat(CLUSTER.sum("feedBytesGathered")).isZero();
    assertThat(answers).extracting(Answer::copied).containsOnly(0);
    // The other executor wrote half of the rows; both epochs read them.
    assertThat(CLUSTER.sum("remoteBytes"))
        .as("half of all, once")
        .isBetween(FeedJob.ROWS / 2 * 32 * 4L, FeedJob.ROWS * 32 * 4L);
    CLUSTER.awaitNothingUsed();
  }
}
