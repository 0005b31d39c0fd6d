package io.weft.spark.transfers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueMember;
import io.weft.collectives.fault.CollectiveException;
import io.weft.device.Deadline;
import io.weft.device.Device;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.junit.jupiter.api.Test;

/** Meetings of the two ends of a clique, by their calls and by their bootstraps. */
class CliqueMeetingsTest {
  private static final List<CliqueEnd> CLIQUE =
      List.of(new CliqueEnd("1", "aa", "host"), new CliqueEnd("2", "bb", "host"));
  private static final CliqueKey KEY =
      new CliqueKey(
          List.of(
              new CliqueMember("1", "aa", Device.HOST), new CliqueMember("2", "bb", Device.HOST)),
          "transfers");
  private static final Deadline LATER = Deadline.after(Duration.ofMinutes(1));

  private final DepartedExecutors departed = new DepartedExecutors();
  private final CliqueMeetings meetings = new CliqueMeetings(departed);
  private final DepartureListener listener = new DepartureListener(departed, meetings);
  private final TransferDriver driver =
      new TransferDriver() {
        @Override
        public CliqueAnswer meet(CliqueCall call) {
          return meetings.answer(call);
        }

        @Override
        public List<Departure> departures(int known) {
          return departed.since(known);
        }
      };

  private CliqueAnswer call(String ticket, int rank, String round, String message) {
    return meetings.answer(
        new CliqueCall(ticket, CLIQUE, rank, round, message == null ? null : message.getBytes()));
  }

  @Test
  void aRoundIsCompleteWhenBothHaveComeAndStaysSoWhenOneLeaves() {
    CliqueAnswer first = call("a", 0, "one", "left");
    assertThat(first.messages()).isNull();
    CliqueAnswer second = call("b", 1, "one", "right");
    assertThat(second.messages()).extracting(String::new).containsExactly("left", "right");
    call("b", 1, CliqueCall.LEAVE, null);
    CliqueAnswer again = call("a", 0, "one", null);
    assertThat(again.messages()).extracting(String::new).containsExactly("left", "right");
    assertThat(again.id()).isEqualTo(first.id()).isEqualTo(second.id());
    assertThat(call("a", 0, "two", "more").failure())
        .isEqualTo("executor 2/host has left the meeting");
    call("a", 0, CliqueCall.LEAVE, null);
    assertThat(meetings.present()).isZero();
  }

  /** Who gave up before the other came is not met; its next coming is. */
  @Test
  void eachComingIsMetOnce() {
    String gaveUp = call("a", 0, CliqueCall.JOIN, null).id();
    call("a", 0, CliqueCall.LEAVE, null);
    String other = call("b", 1, CliqueCall.JOIN, null).id();
    assertThat(other).isNotEqualTo(gaveUp);
    assertThat(call("c", 0, CliqueCall.JOIN, null).id()).isEqualTo(other);
    // A meeting that both have come to is not joined by a later coming.
    assertThat(call("d", 1, CliqueCall.JOIN, null).id()).isNotEqualTo(other);
    // Who comes again without having left is not met by its former self.
    String lost = call("e", 1, CliqueCall.JOIN, null).id();
    assertThat(call("f", 0, CliqueCall.JOIN, null).id()).isEqualTo(lost);
  }

  @Test
  void nobodyWaitsForAnExecutorThatIsGone() {
    call("a", 0, "one", "left");
    listener.onExecutorRemoved(new SparkListenerExecutorRemoved(0, "2", "killed by a test"));
    listener.onExecutorRemoved(new SparkListenerExecutorRemoved(0, "2", "again"));
    assertThat(call("a", 0, "one", null).failure())
        .isEqualTo("executor 2 is gone: killed by a test");
    assertThat(call("b", 0, "one", "left").failure())
        .isEqualTo("executor 2 is gone: killed by a test");
    assertThat(departed.since(0)).containsExactly(new Departure("2", "killed by a test"));
    assertThat(departed.since(1)).isEmpty();
  }

  @Test
  void ticketsOfAnExecutorThatIsGoneAreForgotten() {
    call("a", 0, "one", "left");
    call("b", 1, "one", "right");
    listener.onExecutorRemoved(new SparkListenerExecutorRemoved(0, "2", "killed by a test"));
    assertThat(meetings.present()).isOne();
    call("a", 0, CliqueCall.LEAVE, null);
    assertThat(meetings.present()).isZero();
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
    assertThat(meetings.present()).isZero();
  }

  @Test
  void whoDoesNotComeIsNamedWithWhoWaits() throws Exception {
    try (CliqueBootstrap end = CliqueBootstrap.join(driver, KEY, 0, LATER)) {
      assertThatThrownBy(
              () -> end.exchange("one", new byte[0], Deadline.after(Duration.ofMillis(20))))
          .isInstanceOf(CollectiveException.class)
          .hasMessage(
              "executor 2/host did not come to meet executor 1/host (round one) within 20 ms");
    }
  }

  @Test
  void aDriverThatDoesNotAnswerIsNamed() {
    TransferDriver silent =
        new TransferDriver() {
          @Override
          public CliqueAnswer meet(CliqueCall call) throws IOException {
            throw new IOException("no route");
          }

          @Override
          public List<Departure> departures(int known) {
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
