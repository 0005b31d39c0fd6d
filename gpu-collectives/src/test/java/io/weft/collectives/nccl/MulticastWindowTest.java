package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.Broadcast;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.Recording;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.symmetric.StepRecording;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaMemory;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory that one write reaches on all ranks: its use and its end. */
@UsesDoubles
class MulticastWindowTest extends MulticastGangs {
  @Test
  void memoryInTheWindowIsWrittenByMulticastAndOtherMemoryByNccl() {
    try (RankGang gang = gang(3, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            gather(communicator, buffers, 0);
            assertThat(calls(communicator, Algorithm.NCCL)).isOne();
            SharedWindow window = share(communicator, buffers.receive());
            assertThat(window.memory()).isSameAs(buffers.receive());
            for (int round = 0; round < 10; round++) {
              gather(communicator, buffers, 20L * round);
            }
            assertThat(calls(communicator, Algorithm.MULTICAST)).isEqualTo(10);
            assertThat(calls(communicator, Algorithm.NCCL)).isOne();
            window.close();
            gather(communicator, buffers, 0);
            assertThat(calls(communicator, Algorithm.NCCL)).isEqualTo(2);
            buffers.close();
          });
    }
  }

  /** All ranks reach the same verdict, even the rank that could use multicast. */
  @Test
  void oneRankThatReceivesElsewhereMakesAllUseNccl() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            try (SharedWindow window = share(communicator, buffers.receive())) {
              gather(communicator, buffers, 4L * communicator.rank());
              assertThat(calls(communicator, Algorithm.NCCL)).isOne();
              assertThat(window.memory().bytes()).isEqualTo(BYTES);
            }
            buffers.close();
          });
    }
  }

  /** Two multicast operations in a row on the stream, with one of NCCL between them. */
  @Test
  void groupsMixBothWays() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            int rank = communicator.rank();
            try (SharedWindow window = share(communicator, buffers.receive());
                CudaMemory memory = buffers.plain().take(12 * COUNT)) {
              TypedBuffer send = ints(memory, 0, COUNT);
              Values.fill(send, rank);
              TypedBuffer here = ints(window.memory(), 12, 2L * COUNT);
              TypedBuffer there = ints(window.memory(), 1 << 20, COUNT);
              TypedBuffer apart = ints(memory, 4 * COUNT, 2L * COUNT);
              communicator.runGroup(
                  List.of(new AllGather(send, here), new Broadcast(send, there, 1)));
              assertThat(calls(communicator, Algorithm.MULTICAST)).isEqualTo(2);
              Values.check("gathered", here, i -> Values.of((int) (i / COUNT), i % COUNT));
              Values.check("broadcast", there, i -> Values.of(1, i));
              communicator.runGroup(
                  List.of(
                      new Broadcast(send, there, 0),
                      new AllGather(send, apart),
                      new AllGather(send, here)));
              assertThat(calls(communicator, Algorithm.NCCL)).isEqualTo(3);
              Values.check("broadcast", there, i -> Values.of(0, i));
              Values.check("apart", apart, i -> Values.of((int) (i / COUNT), i % COUNT));
            }
            buffers.close();
          });
    }
  }

  @Test
  void graphsGoByNccl() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            try (SharedWindow window = share(communicator, buffers.receive())) {
              TypedBuffer data = ints(window.memory(), 0, COUNT);
              Values.fill(data, communicator.rank());
              communicator.barrier();
              try (Recording recording =
                  StepRecording.record(
                      communicator, MovedBuffers.REFUSE, body -> body.broadcast(data, 1))) {
                assertThat(recording.whyNoGraph()).isEmpty();
                recording.replay();
                Values.check("broadcast", data, i -> Values.of(1, i));
              }
              assertThat(calls(communicator, Algorithm.MULTICAST)).isZero();
            }
            buffers.close();
          });
    }
  }

  @Test
  void windowKeepsItsMemory() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            Buffers buffers = Buffers.of(communicator);
            SharedWindow window = share(communicator, buffers.receive());
            buffers.receive().close();
            assertThat(buffers.pool().takenBytes()).isPositive();
            window.close();
            window.close();
            assertThat(buffers.pool().takenBytes()).isZero();
            buffers.close();
          });
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void windowEndsWithItsCommunicator(boolean breaks) {
    List<Buffers> buffers;
    List<SharedWindow> windows;
    try (RankGang gang = gang(3, LONG)) {
      buffers = gang.ask(Buffers::of);
      windows =
          gang.ask(communicator -> share(communicator, buffers.get(communicator.rank()).receive()));
      gang.run(communicator -> gather(communicator, buffers.get(communicator.rank()), 0));
      if (breaks) {
        gang.rank(1).abort("for the test");
      }
    }
    windows.forEach(SharedWindow::close);
    buffers.forEach(Buffers::close);
    buffers.forEach(each -> assertThat(each.pool().takenBytes()).isZero());
  }
}
