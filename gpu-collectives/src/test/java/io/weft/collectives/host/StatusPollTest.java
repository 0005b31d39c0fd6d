package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.AllReduce;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.FrameChannel;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.TimeoutDiagnosis.RankStatus;
import io.weft.collectives.host.TimeoutDiagnosis.StatusPoll;
import io.weft.device.Deadline;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The diagnosis takes a second, for any number of ranks that do not answer. */
class StatusPollTest {
  private static final int NEIGHBOURS = 8;
  private static final int REMOTES = 16;

  private final PrivateBlocks blocks =
      new PrivateBlocks(NEIGHBOURS, new BufferSizes(128, 128, 128));
  private final List<SocketChannel> channels = new ArrayList<>();
  private final Map<Integer, ControlPeer> peers = new HashMap<>();
  private final Call call = new Call();
  private RemoteRanks remotes;

  @BeforeEach
  void connect() throws IOException {
    TypedBuffer nothing = TypedBuffer.empty(DataType.INT32);
    Signature signature = new AllReduce(nothing, nothing, ReduceOp.SUM).signature();
    call.start(signature, 3, Deadline.after(Duration.ofSeconds(1)));
    Map<Integer, RemoteRanks.Remote> all = new HashMap<>();
    for (int rank = NEIGHBOURS; rank < NEIGHBOURS + REMOTES; rank++) {
      SocketChannel channel = SocketChannel.open();
      channels.add(channel);
      ControlPeer peer =
          new ControlPeer(
              rank, NEIGHBOURS + REMOTES, new FrameChannel(channel, ControlPeer.MAX_BYTES));
      peers.put(rank, peer);
      all.put(rank, new RemoteRanks.Remote(peer, List.of()));
    }
    remotes = new RemoteRanks(all, Optional.empty());
    for (int rank = 1; rank < NEIGHBOURS; rank++) {
      blocks.block(rank).publishWait(new WaitStatus(0, 3, signature));
    }
  }

  @AfterEach
  void disconnect() throws IOException {
    for (SocketChannel channel : channels) {
      channel.close();
    }
  }

  @Test
  void silentRanksAreWaitedForTogether() {
    long start = System.nanoTime();
    StatusPoll survey = new StatusPoll(blocks.localPeers(0), remotes, call);
    for (int rank = 1; rank < NEIGHBOURS; rank++) {
      RankStatus status = survey.status(rank);
      assertThat(status.state()).isEqualTo(RankStatus.State.OPEN);
      assertThat(status.waiting()).as("rank " + rank + " no longer polls").isEmpty();
    }
    for (int rank = NEIGHBOURS; rank < NEIGHBOURS + REMOTES; rank++) {
      RankStatus status = survey.status(rank);
      assertThat(status.state()).isEqualTo(RankStatus.State.DEAD);
      assertThat(status.failure().orElseThrow()).hasMessageContaining("rank " + rank + " is stuck");
    }
    // One after the other they would take a second each.
    assertThat(Duration.ofNanos(System.nanoTime() - start))
        .isLessThan(StatusPoll.LENGTH.multipliedBy(REMOTES));
  }

  @Test
  void ranksThatBeatOrAnswerAreNotStuck() throws IOException {
    StatusPoll survey = new StatusPoll(blocks.localPeers(0), remotes, call);
    blocks.block(2).publishBeat();
    assertThat(survey.status(2).waiting().orElseThrow().rank()).isZero();
    ControlPeer peer = peers.get(NEIGHBOURS + 3);
    Optional<WaitStatus> waits = Optional.of(new WaitStatus(2, 3, call.signature()));
    byte[] answer = answerOf(waits);
    assertThat(peer.receive(answer, Optional.empty())).isEmpty();
    assertThat(survey.status(NEIGHBOURS + 3).waiting()).isEqualTo(waits);
  }

  /** The answer of a waiting rank to the first request. */
  private static byte[] answerOf(Optional<WaitStatus> waits) throws IOException {
    ByteBuffer out = ByteBuffer.allocate(37);
    WaitStatus status = waits.orElseThrow();
    return out.put((byte) 4)
        .putLong(1)
        .putInt(status.rank())
        .putLong(status.sequence())
        .putInt(status.signature().code())
        .putInt(status.signature().root())
        .putLong(status.signature().count())
        .array();
  }
}
