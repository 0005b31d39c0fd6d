package io.weft.spark.transfers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Deadline;
import io.weft.device.Device;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLosses;
import io.weft.spark.rendezvous.ExecutorLosses.ExecutorLoss;
import io.weft.spark.rendezvous.RendezvousAnswer;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.rendezvous.RendezvousService;
import io.weft.spark.transfers.ExecutorTransfers.CliqueBootstrap;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.junit.jupiter.api.Test;

/** The rendezvous of the two ends of a clique, by their calls and by their bootstraps. */
class CliqueBootstrapTest {
  private static final CliquePair CLIQUE =
      new CliquePair(
          List.of(new CliquePair.End("1", "aa", "host"), new CliquePair.End("2", "bb", "host")));
  private static final CliqueKey KEY =
      new CliqueKey(
          List.of(
              new CliqueMember("1", "aa", Device.HOST), new CliqueMember("2", "bb", Device.HOST)),
          "transfers");
  private static final Deadline LATER = Deadline.after(Duration.ofMinutes(1));

  private final ExecutorLosses losses = new ExecutorLosses();
  private final RendezvousService<CliquePair> cliques = new RendezvousService<>(losses);
  private final ExecutorLosses.Listener listener = new ExecutorLosses.Listener(losses, cliques);
  private final TransferDriver driver =
      new TransferDriver() {
        @Override
        public RendezvousAnswer ask(RendezvousCall<CliquePair> call) {
          return cliques.answer(call);
        }

        @Override
        public List<ExecutorLoss> lossesSince(int known) {
          return losses.since(known);
        }
      };

  private RendezvousAnswer call(String ticket, int rank, String round, String message) {
    return cliques.answer(
        new RendezvousCall<>(
            CLIQUE,
            ticket,
            rank,
            2,
            CLIQUE.ends().get(rank).toString(),
            round,
            message == null ? null : message.getBytes(),
            null));
  }

  @Test
  void aCompleteRoundStaysCompleteWhenOneEndLeaves() {
    RendezvousAnswer first = call("a", 0, "one", "left");
    assertThat(first.messages()).isNull();
    RendezvousAnswer second = call("b", 1, "one", "right");
    assertThat(second.messages()).extracting(String::new).containsExactly("left", "right");
    call("b", 1, RendezvousCall.LEAVE, null);
    RendezvousAnswer again = call("a", 0, "one", null);
    assertThat(again.messages()).extracting(String::new).containsExactly("left", "right");
    assertThat(again.id()).isEqualTo(first.id()).isEqualTo(second.id());
    assertThat(call("a", 0, "two", "more").failure())
        .isEqualTo("executor 2/host has left the rendezvous");
    call("a", 0, RendezvousCall.LEAVE, null);
    assertThat(cliques.present()).isZero();
  }

  /** An end that left before the other came is not met; its next visit is. */
  @Test
  void eachVisitIsMetOnce() {
    String gaveUp = call("a", 0, RendezvousCall.JOIN, null).id();
    call("a", 0, RendezvousCall.LEAVE, null);
    String other = call("b", 1, RendezvousCall.JOIN, null).id();
    assertThat(other).isNotEqualTo(gaveUp);
    assertThat(call("c", 0, RendezvousCall.JOIN, null).id()).isEqualTo(other);
    // A later visit does not join a rendezvous to which both have come.
    assertThat(call("d", 1, RendezvousCall.JOIN, null).id()).isNotEqualTo(other);
    // An end that comes again without having left opens a new rendezvous.
    String lost = call("e", 1, RendezvousCall.JOIN, null).id();
    assertThat(call("f", 0, RendezvousCall.JOIN, null).id()).isEqualTo(lost);
  }

  @Test
  void noEndWaitsForALostExecutor() {
    call("a", 0, "one", "left");
    listener.onExecutorRemoved(new SparkListenerExecutorRemoved(0, "2", "killed by a test"));
    listener.onExecutorRemoved(new SparkListenerExecutorRemoved(0, "2", "again"));
    assertThat(call("a", 0, "one", null).failure())
        .isEqualTo("executor 2 was lost: killed by a test");
    assertThat(call("b", 0, "one", "left").failure())
        .isEqualTo("executor 2 was lost: killed by a test");
    assertThat(losses.since(0)).containsExactly(new ExecutorLoss(1, "2", "killed by a test"));
    assertThat(losses.since(1)).isEmpty();
  }

  @Test
  void ticketsOfALostExecutorAreForgotten() {
    call("a", 0, "one", "left");
    call("b", 1, "one", "right");
    listener.onExecutorRemoved(new SparkListenerExecutorRemoved(0, "2", "killed by a test"));
    assertThat(cliques.present()).isOne();
    call("a", 0, RendezvousCall.LEAVE, null);
    assertThat(cliques.present()).isZero();
  }

  @Test
  void bootstrapsMeetAndLeave() throws Exception {
    CompletableFuture<List<byte[]>> other =
        CompletableFuture.supplyAsync(
            () -> {
              try (CliqueBootstrap end = CliqueBootstrap.join(driver, KEY, 1, LATER)) {
                return end.exchange("one", "right".getBytes(), LATER);
              } catch (IOException e) {
                throw new IllegalStateException(e);
              }
            });
    try (CliqueBootstrap end = CliqueBootstrap.join(driver, KEY, 0, LATER)) {
      assertThat(end.rank()).isZero();
      assertThat(end.nranks()).isEqualTo(2);
      assertThat(end.exchange("one", "left".getBytes(), LATER))
          .extracting(String::new)
          .containsExactly("left", "right");
      assertThat(other.get(60, TimeUnit.SECONDS))
          .extracting(String::new)
          .containsExactly("left", "right");
    }
    assertThat(cliques.present()).isZero();
  }

  @Test
  void theMissingEndIsNamedWithTheEndThatWaits() throws Exception {
    try (CliqueBootstrap end = CliqueBootstrap.join(driver, KEY, 0, LATER)) {
      assertThatThrownBy(
              () -> end.exchange("one", new byte[0], Deadline.after(Duration.ofMillis(20))))
          .isInstanceOf(CollectiveException.class)
          .hasMessage(
              "executor 2/host did not come to the rendezvous with executor 1/host (round one) within 20 ms");
    }
  }

  @Test
  void aDriverThatDoesNotAnswerIsNamed() {
    TransferDriver silent =
        new TransferDriver() {
          @Override
          public RendezvousAnswer ask(RendezvousCall<CliquePair> call) throws IOException {
            throw new IOException("no route");
          }

          @Override
          public List<ExecutorLoss> lossesSince(int known) {
            return List.of();
          }
        };
    assertThatThrownBy(
            () -> CliqueBootstrap.join(silent, KEY, 0, Deadline.after(Duration.ofMillis(20))))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("the driver gave no answer within 20 ms")
        .hasMessageContaining("no route");
  }
}
