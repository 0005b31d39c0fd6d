package io.weft.spark.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TrafficReport;
import io.weft.spark.config.Activation;
import io.weft.spark.config.WeftVersion;
import io.weft.spark.driver.DriverAnswers.KnownCopies;
import io.weft.spark.driver.DriverAnswers.TransferRendezvous;
import io.weft.spark.driver.OutputAdoptions.ShuffleStages;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLosses;
import io.weft.spark.rendezvous.ExecutorLosses.ExecutorLoss;
import io.weft.spark.rendezvous.RendezvousAnswer;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.rendezvous.RendezvousService;
import io.weft.spark.rendezvous.StageRendezvous;
import io.weft.spark.runtime.MessageCodec;
import io.weft.spark.runtime.Messages.Announce;
import io.weft.spark.runtime.Messages.AskCopied;
import io.weft.spark.runtime.Messages.AskEnded;
import io.weft.spark.runtime.Messages.AskLosses;
import io.weft.spark.runtime.Messages.CliqueCall;
import io.weft.spark.runtime.Messages.Copied;
import io.weft.spark.runtime.Messages.CopyKnown;
import io.weft.spark.runtime.Messages.CopyNotRead;
import io.weft.spark.runtime.Messages.Ended;
import io.weft.spark.runtime.Messages.ExecutorReport;
import io.weft.spark.runtime.Messages.Found;
import io.weft.spark.runtime.Messages.Hello;
import io.weft.spark.runtime.Messages.Lookup;
import io.weft.spark.runtime.Messages.Losses;
import io.weft.spark.runtime.Messages.MemoryPressure;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.runtime.Messages.Verdict;
import io.weft.spark.ui.ExecutorRow;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.junit.jupiter.api.Test;

class DriverAnswersTest {
  private final SparkConf conf = new SparkConf(false);
  private final DriverState state = new DriverState(Activation.decide(conf), conf);
  private final List<String> pressed = new ArrayList<>();
  private final List<Copied> copies = new ArrayList<>();
  private final ExecutorLosses losses = new ExecutorLosses();
  private final RendezvousService<CliquePair> cliques = new RendezvousService<>(losses);
  private final DriverAnswers answers =
      new DriverAnswers(
          state,
          new StageRendezvous(),
          new TransferRendezvous(cliques, losses),
          new OutputAdoptions(
              state, new ShuffleStages(shuffle -> false, shuffle -> false, shuffle -> 0)),
          new KnownCopies() {
            @Override
            public void copied(Copied copy) {
              copies.add(copy);
            }

            @Override
            public boolean isCopied(int shuffle, long map) {
              return copies.stream()
                  .anyMatch(copy -> copy.shuffleId() == shuffle && copy.mapId() == map);
            }

            @Override
            public void notRead(int shuffle) {
              copies.removeIf(copy -> copy.shuffleId() == shuffle);
            }
          },
          pressed::add);

  @Test
  void anExecutorOfTheSameVersionMayJoin() {
    assertThat(answers.to(new Hello("1", "host", WeftVersion.current())))
        .isEqualTo(Verdict.WELCOME);
    assertThat(state.wasGreeted("1")).isTrue();
    assertThat(state.wasGreeted("2")).isFalse();
  }

  @Test
  void aCopyIsPassedOnWithoutAnAnswer() {
    Copied copy = new Copied("1", 3, 7, true, false);
    assertThat(answers.to(copy)).isNull();
    assertThat(copies).containsExactly(copy);
    assertThat(answers.to(new AskCopied(copy.shuffleId(), copy.mapId())))
        .isEqualTo(new CopyKnown(true));
    assertThat(answers.to(new AskCopied(copy.shuffleId(), copy.mapId() + 1)))
        .isEqualTo(new CopyKnown(false));
    assertThat(answers.to(new CopyNotRead(copy.shuffleId()))).isNull();
    assertThat(copies).isEmpty();
  }

  @Test
  void anExecutorOfAnotherVersionIsRefusedWithBothVersions() {
    Verdict verdict = (Verdict) answers.to(new Hello("1", "host", "0.0.9"));
    assertThat(verdict.refusal())
        .startsWith("Executor 1 on host runs Weft 0.0.9, but the driver runs Weft ")
        .contains(WeftVersion.current(), "--jars");
  }

  @Test
  void anAnnouncedExecutorIsFound() {
    PeerAddress address =
        new PeerAddress("1", "00c0ffee", "host", 1, "/folder", "token", "boot", "1");
    assertThat(answers.to(new Lookup("boot", List.of("1")))).isEqualTo(new Found(List.of()));
    String remark = "Blocks go to Spark's local folders because /dev/shm does not exist";
    assertThat(answers.to(new Announce(address, remark))).isEqualTo(Verdict.WELCOME);
    assertThat(state.activity().executors().rows())
        .extracting(ExecutorRow::id, ExecutorRow::host, ExecutorRow::warning)
        .containsExactly(tuple("1", "host", remark));
    assertThat(answers.to(new Lookup("boot", List.of("2", "1"))))
        .isEqualTo(new Found(List.of(address)));
  }

  /** The token of a folder is a secret, and a thousand folders are many bytes. */
  @Test
  void anotherKernelLearnsNoFolder() {
    PeerAddress address =
        new PeerAddress("1", "00c0ffee", "host", 1, "/folder", "token", "boot", "1");
    assertThat(answers.to(new Announce(address, null))).isEqualTo(Verdict.WELCOME);
    Object answer = answers.to(new Lookup("another", List.of("1")));
    assertThat(answer).isEqualTo(new Found(List.of(address.withoutFolder())));
    assertThat(MessageCodec.decode(MessageCodec.encode((Found) answer))).isEqualTo(answer);
  }

  @Test
  void membersOfCliquesMeetAndLearnOfLostExecutors() {
    CliquePair clique =
        new CliquePair(
            List.of(new CliquePair.End("1", "aa", "host"), new CliquePair.End("2", "bb", "host")));
    RendezvousCall<CliquePair> call =
        new RendezvousCall<>(
            clique, "ticket", 0, 2, "executor 1/host", RendezvousCall.JOIN, null, null);
    assertThat(((RendezvousAnswer) answers.to(new CliqueCall(call))).failure()).isNull();
    assertThat(answers.to(new AskLosses(0))).isEqualTo(new Losses(List.of()));
    new ExecutorLosses.Listener(losses, cliques)
        .onExecutorRemoved(new SparkListenerExecutorRemoved(0, "2", "killed"));
    assertThat(((RendezvousAnswer) answers.to(new CliqueCall(call))).failure())
        .isEqualTo("executor 2 was lost: killed");
    assertThat(answers.to(new AskLosses(0)))
        .isEqualTo(new Losses(List.of(new ExecutorLoss(1, "2", "killed"))));
    assertThat(answers.to(new AskLosses(1))).isEqualTo(new Losses(List.of()));
  }

  @Test
  void pressureAndReportsNeedNoAnswer() {
    ExecutorReport report = new ExecutorReport("1", "host", Map.of("memoryUsed", 7L));
    assertThat(answers.to(new Report(report, TrafficReport.NONE, false))).isNull();
    assertThat(state.activity().executors().rows())
        .extracting(ExecutorRow::values)
        .containsExactly(report.values());
    assertThat(answers.to(new MemoryPressure("1"))).isNull();
    assertThat(pressed).containsExactly("1");
  }

  /** Without Spark's driver, no shuffle is known to have ended. */
  @Test
  void endedShufflesExcludeThoseThatMayBeAlive() {
    assertThat(answers.to(new AskEnded(List.of(1, 2)))).isEqualTo(new Ended(List.of()));
    assertThatThrownBy(() -> new AskEnded(Collections.nCopies(AskEnded.MOST + 1, 1)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void anUnknownMessageIsAnError() {
    assertThatThrownBy(() -> answers.to("hello"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("does not know the message hello");
  }
}
