package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.spark.config.Activation;
import io.weft.spark.driver.DriverAnswers.TransferRendezvous;
import io.weft.spark.driver.OutputAdoptions.ShuffleStages;
import io.weft.spark.rendezvous.ExecutorLosses;
import io.weft.spark.rendezvous.RendezvousService;
import io.weft.spark.rendezvous.StageRendezvous;
import io.weft.spark.runtime.Messages.Announce;
import io.weft.spark.runtime.Messages.Verdict;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** The tab's table of paths between executors, which a local application does not have. */
class StatusHtmlTest {
  private final SparkConf conf = new SparkConf(false);
  private final DriverState state = new DriverState(Activation.decide(conf), conf);

  private void announce(String id, String kernel, GpuEnd gpu) {
    ExecutorLosses losses = new ExecutorLosses();
    DriverAnswers answers =
        new DriverAnswers(
            state,
            new StageRendezvous(),
            new TransferRendezvous(new RendezvousService<>(losses), losses),
            new OutputAdoptions(state, new ShuffleStages(shuffle -> false, shuffle -> false)),
            unused -> {});
    PeerAddress address =
        new PeerAddress(id, "00c0ffee", "host", 1, "/folder", "token", kernel, "1", gpu);
    assertThat(answers.to(new Announce(address, null))).isEqualTo(Verdict.WELCOME);
  }

  @Test
  void pathsBetweenExecutorsAreShownWithTheirReasons() {
    announce("1", "a", GpuEnd.of("uuid-1", 0, "a GPU", "2.28.3"));
    assertThat(StatusHtml.of(state)).doesNotContain("Between executors");
    announce("2", "a", GpuEnd.of("uuid-2", 0, "a GPU", "2.28.3"));
    announce("3", "b", GpuEnd.without("<none>"));
    assertThat(StatusHtml.of(state))
        .contains("Between executors")
        .contains(
            "<td>blocks of shuffles</td><td>shm</td><td>both run on one kernel</td><td>1</td>")
        .contains("<td>nccl</td><td>a GPU each, and NCCL 2.28.3 at both ends</td><td>1</td>")
        .contains("<td>tcp</td><td>no NCCL: &lt;none&gt;; they run on two kernels</td><td>2</td>")
        .contains("<td>1 and 3</td>");
  }

  @Test
  void theTitleHasTheNumberOfShownExecutors() {
    assertThat(StatusHtml.pathsTitle(PathGroup.MAX_EXECUTORS)).doesNotContain("of");
    assertThat(StatusHtml.pathsTitle(PathGroup.MAX_EXECUTORS + 1)).endsWith("(200 of 201)");
  }
}
