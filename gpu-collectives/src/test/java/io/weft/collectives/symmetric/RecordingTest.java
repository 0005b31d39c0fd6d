package io.weft.collectives.symmetric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.OperationKind;
import io.weft.collectives.Receive;
import io.weft.collectives.Recording;
import io.weft.collectives.Recording.ReplayStatistics;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Send;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostLane;
import io.weft.device.Lane;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class RecordingTest {
  private static final Deadline SOON = Deadline.after(Duration.ofMinutes(5));

  @TempDir Path folder;

  private RankGang gang(String implementation, int nranks) {
    CommunicatorFactory factory =
        implementation.equals("host")
            ? new HostCommunicators(HostOptions.defaults().withFolder(folder))
            : LocalCommunicator::create;
    return RankGang.open(factory, nranks, Duration.ofSeconds(60));
  }

  /** Memory that can be moved, shortened and freed under its views. */
  private static final class Slab implements BufferOwner {
    private ByteBuffer memory;

    private Slab(int bytes) {
      memory = ByteBuffer.allocateDirect(bytes);
    }

    private void move(int bytes) {
      memory = ByteBuffer.allocateDirect(bytes);
    }

    private void free() {
      memory = null;
    }

    private TypedBuffer ints(long first, long count) {
      return TypedBuffer.of(this, first, DataType.INT32, count);
    }

    @Override
    public long address() {
      if (memory == null) {
        throw new IllegalStateException("the slab was freed");
      }
      return Memory.addressOf(memory);
    }

    @Override
    public long bytes() {
      return memory.capacity();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "host"})
  void replaysComputeTheSameAsRuns(String implementation) {
    try (RankGang gang = gang(implementation, 3)) {
      gang.run(
          communicator -> {
            Slab slab = new Slab(8000);
            TypedBuffer data = slab.ints(0, 1000);
            TypedBuffer copy = slab.ints(4000, 1000);
            Recording recording =
                StepRecording.record(
                    communicator,
                    MovedBuffers.REFUSE,
                    recorder -> {
                      recorder.allReduce(data, ReduceOp.SUM);
                      recorder.broadcast(data, 1);
                      recorder.allReduce(data, copy, ReduceOp.MAX);
                      ring(recorder, data, copy);
                    });
            assertThat(recording.size()).isEqualTo(4);
            assertThat(communicator.metrics().calls(OperationKind.ALL_REDUCE)).isZero();
            for (int replay = 1; replay <= 5; replay++) {
              int now = replay;
              Values.fill(data, index -> communicator.rank() + index * now);
              recording.replay();
              Values.check("replay " + replay, copy, index -> 3 + 3 * index * now);
            }
            assertThat(recording.statistics()).isEqualTo(new ReplayStatistics(5, 0, 0));
          });
    }
  }

  private static void ring(Communicator communicator, TypedBuffer send, TypedBuffer receive) {
    int next = (communicator.rank() + 1) % communicator.nranks();
    int before = (communicator.rank() + communicator.nranks() - 1) % communicator.nranks();
    communicator.runGroup(List.of(new Send(send, next), new Receive(receive, before)));
  }

  private static Recording sum(Communicator communicator, TypedBuffer data, MovedBuffers policy) {
    return StepRecording.record(
        communicator, policy, recorder -> recorder.allReduce(data, ReduceOp.SUM));
  }

  /** Trap: a recording keeps old addresses, but the memory has moved since. */
  @ParameterizedTest
  @ValueSource(strings = {"local", "host"})
  void movedBufferIsFollowedOnTheRankItMovedOn(String implementation) {
    try (RankGang gang = gang(implementation, 3)) {
      gang.run(
          communicator -> {
            Slab slab = new Slab(4100);
            Recording recording = sum(communicator, slab.ints(100, 1000), MovedBuffers.UPDATE);
            for (int replay = 0; replay < 6; replay++) {
              if (replay % 3 == communicator.rank()) {
                slab.move(4200 + 8 * replay);
              }
              Values.fill(slab.ints(100, 1000), index -> communicator.rank() + index);
              recording.replay();
              Values.check("moved", slab.ints(100, 1000), index -> 3 + 3 * index);
            }
            assertThat(recording.statistics()).isEqualTo(new ReplayStatistics(6, 2, 0));
          });
    }
  }

  private static CollectiveException failure(Runnable action) {
    return catchThrowableOfType(CollectiveException.class, action::run);
  }

  @Test
  void movedBufferIsRefusedOnAllRanksByNameAndNothingIsHarmed() {
    try (RankGang gang = gang("host", 3)) {
      gang.run(
          communicator -> {
            Slab slab = new Slab(4000);
            Recording recording = sum(communicator, slab.ints(0, 1000), MovedBuffers.REFUSE);
            Values.fill(slab.ints(0, 1000), index -> 1);
            if (communicator.rank() == 2) {
              slab.move(4000);
            }
            CollectiveException refused = failure(recording::replay);
            assertThat(refused.kind()).isEqualTo(Kind.INVALID);
            assertThat(refused.ranks()).containsExactly(2);
            assertThat(refused)
                .hasMessageContaining("rank 2, step 0")
                .hasMessageContaining("moved to");
            if (communicator.rank() != 2) {
              Values.check("untouched", slab.ints(0, 1000), index -> 1);
            }
            assertThat(recording.statistics()).isEqualTo(new ReplayStatistics(0, 0, 1));
            Recording again = sum(communicator, slab.ints(0, 1000), MovedBuffers.REFUSE);
            Values.fill(slab.ints(0, 1000), index -> 1);
            again.replay();
            Values.check("again", slab.ints(0, 1000), index -> 3);
          });
    }
  }

  @Test
  void shorterOrFreedMemoryIsRefusedOnAllRanksEvenIfItMayMove() {
    try (RankGang gang = gang("local", 3)) {
      gang.run(
          communicator -> {
            Slab slab = new Slab(4000);
            Recording recording = sum(communicator, slab.ints(0, 1000), MovedBuffers.UPDATE);
            if (communicator.rank() == 0) {
              slab.move(3996);
            } else if (communicator.rank() == 1) {
              slab.free();
            }
            CollectiveException refused = failure(recording::replay);
            assertThat(refused.ranks()).containsExactly(0, 1);
            assertThat(refused)
                .hasMessageContaining("no longer fits its memory of 3996 bytes")
                .hasMessageContaining("the slab was freed");
            slab.move(4000);
            Values.fill(slab.ints(0, 1000), index -> 2);
            recording.replay();
            Values.check("enlarged again", slab.ints(0, 1000), index -> 6);
          });
    }
  }

  @Test
  void differentSequencesAreNamed() {
    try (RankGang gang = gang("local", 3)) {
      gang.run(
          communicator -> {
            TypedBuffer data = new Slab(400).ints(0, 100);
            CollectiveException failure =
                failure(
                    () ->
                        StepRecording.record(
                            communicator,
                            MovedBuffers.UPDATE,
                            recorder -> {
                              recorder.allReduce(data, ReduceOp.SUM);
                              if (communicator.rank() == 1) {
                                recorder.broadcast(data, 0);
                              }
                              recorder.barrier();
                            }));
            assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
            assertThat(failure.ranks()).containsExactly(0, 1);
            assertThat(failure)
                .hasMessageContaining("step 1 rank 0 has barrier")
                .hasMessageContaining("rank 1 has broadcast");
            communicator.barrier();
          });
    }
  }

  @Test
  void failureWhileRecordingReachesAllRanks() {
    try (RankGang gang = gang("local", 2)) {
      gang.run(
          communicator -> {
            CollectiveException failure =
                failure(
                    () ->
                        StepRecording.record(
                            communicator,
                            MovedBuffers.UPDATE,
                            recorder -> {
                              if (recorder.rank() == 1) {
                                throw new IllegalStateException("out of buffers");
                              }
                            }));
            assertThat(failure).hasMessageContaining("out of buffers");
            assertThat(failure.ranks()).containsExactly(1);
            communicator.barrier();
          });
    }
  }

  @Test
  void replaysOnALaneKeepTheOrderOfTheCommunicator() {
    try (RankGang gang = gang("host", 2)) {
      gang.run(
          communicator -> {
            Slab slab = new Slab(400);
            TypedBuffer data = slab.ints(0, 100);
            Recording recording =
                StepRecording.record(
                    communicator,
                    MovedBuffers.REFUSE,
                    recorder -> {
                      recorder.allReduce(data, ReduceOp.SUM);
                      recorder.allReduce(data, ReduceOp.SUM);
                    });
            Values.fill(data, index -> 1);
            try (Lane lane =
                HostLane.open("replay-" + communicator.rank(), Duration.ofSeconds(60))) {
              Event first = recording.submit(lane);
              Event second = recording.submit(lane);
              communicator.barrier();
              first.await(SOON);
              second.await(SOON);
            }
            Values.check("four sums of two", data, index -> 16);
          });
    }
  }

  @Test
  void recorderTakesNoLanesAndNothingAfterItsEnd() {
    try (RankGang gang = gang("local", 1);
        Lane lane = HostLane.open("unused", Duration.ofSeconds(10))) {
      Communicator communicator = gang.rank(0);
      Communicator[] kept = new Communicator[1];
      Recording empty =
          StepRecording.record(
              communicator,
              MovedBuffers.REFUSE,
              recorder -> {
                kept[0] = recorder;
                assertThat(recorder.id()).isEqualTo(communicator.id());
                assertThat(failure(() -> recorder.submitGroup(List.of(), lane)))
                    .hasMessageContaining("no lanes");
              });
      assertThat(failure(() -> kept[0].barrier())).hasMessageContaining("has ended");
      assertThat(empty.size()).isZero();
      empty.replay();
      assertThat(empty.submit(lane).state()).isEqualTo(Event.State.COMPLETE);
    }
  }

  /** The public way, with as many small steps as a training step has. */
  @ParameterizedTest
  @ValueSource(strings = {"local", "host"})
  void smallStepsRunTogetherAndComputeTheSame(String implementation) {
    try (RankGang gang = gang(implementation, 3)) {
      gang.run(
          communicator -> {
            Slab slab = new Slab(4 * 50 * 8);
            TypedBuffer all = slab.ints(0, 50 * 8);
            try (Recording recording =
                communicator.record(
                    recorder -> {
                      for (int step = 0; step < 50; step++) {
                        recorder.allReduce(all.slice(8 * step, 8), ReduceOp.SUM);
                      }
                    })) {
              assertThat(recording.size()).isEqualTo(50);
              for (int replay = 1; replay <= 3; replay++) {
                int now = replay;
                Values.fill(all, index -> communicator.rank() + index * now);
                recording.replay();
                Values.check("replay " + replay, all, index -> 3 + 3 * index * now);
              }
            }
            // Each replay also agrees that the buffers exist.
            assertThat(communicator.metrics().calls(OperationKind.ALL_REDUCE)).isEqualTo(6);
          });
    }
  }

  /** On one rank the second step reads what the first writes, so none may run them together. */
  @Test
  void stepsThatDependOnEachOtherOnOneRankRunApartOnAll() {
    try (RankGang gang = gang("host", 3)) {
      gang.run(
          communicator -> {
            Slab slab = new Slab(120);
            TypedBuffer first = slab.ints(0, 10);
            TypedBuffer second = communicator.rank() == 1 ? first : slab.ints(40, 10);
            TypedBuffer message = slab.ints(80, 10);
            Recording recording =
                communicator.record(
                    recorder -> {
                      if (communicator.rank() == 0) {
                        recorder.send(message, 2);
                      }
                      recorder.allReduce(first, ReduceOp.SUM);
                      recorder.allReduce(second, ReduceOp.SUM);
                      if (communicator.rank() == 2) {
                        recorder.receive(message, 0);
                      }
                    });
            Values.fill(slab.ints(0, 30), index -> 1);
            recording.replay();
            // The first step makes 3 of all ones; rank 1 adds its 3 to the ones of the others.
            Values.check("second", second, index -> 5);
            assertThat(communicator.metrics().calls(OperationKind.ALL_REDUCE)).isEqualTo(3);
          });
    }
  }

  /** Steps that were independent when they were recorded may depend on each other after a move. */
  @Test
  void stepsThatOverlapAfterAMoveRunApart() {
    try (RankGang gang = gang("host", 3)) {
      gang.run(
          communicator -> {
            Slab first = new Slab(40);
            Slab second = new Slab(40);
            Recording recording =
                communicator.record(
                    recorder -> {
                      recorder.allReduce(first.ints(0, 10), ReduceOp.SUM);
                      recorder.allReduce(second.ints(0, 10), ReduceOp.SUM);
                    });
            Values.fill(first.ints(0, 10), index -> 1);
            Values.fill(second.ints(0, 10), index -> 1);
            recording.replay();
            Values.check("together", second.ints(0, 10), index -> 3);
            if (communicator.rank() == 1) {
              second.memory = first.memory;
            }
            Values.fill(first.ints(0, 10), index -> 1);
            Values.fill(second.ints(0, 10), index -> 1);
            recording.replay();
            // Rank 1 adds the 3 of its first step to the ones of the others.
            Values.check("apart", second.ints(0, 10), index -> 5);
          });
    }
  }

  @Test
  void replayAfterTheCommunicatorFailedSaysSo() {
    try (RankGang gang = gang("host", 2)) {
      gang.run(
          communicator -> {
            SymmetricBuffer buffer = communicator.symmetric(DataType.INT32, 10);
            Recording recording =
                communicator.record(
                    recorder -> recorder.allReduce(buffer.elements(), ReduceOp.SUM));
            recording.replay();
            SymmetricBuffer closed = communicator.symmetric(DataType.INT32, 10);
            Recording late =
                communicator.record(
                    recorder -> recorder.allReduce(closed.elements(), ReduceOp.SUM));
            if (communicator.rank() == 1) {
              closed.close();
            }
            assertThatThrownBy(late::replay)
                .hasMessageContaining("is closed")
                .hasMessageContaining("rank 1");
            recording.replay();
            communicator.barrier();
            if (communicator.rank() == 1) {
              communicator.abort("enough");
            }
            assertThatThrownBy(recording::replay).hasMessageContaining("enough");
          });
    }
  }
}
