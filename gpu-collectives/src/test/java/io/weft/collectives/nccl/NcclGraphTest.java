package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.OperationKind;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.Receive;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.symmetric.StepRecording;
import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.HostLane;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Recordings that the device runs without the host. */
@UsesDoubles
class NcclGraphTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int COUNT = 1000;
  private static final int BYTES = 1 << 20;

  @TempDir Path folder;

  private RankGang gang(int nranks, Duration timeout) {
    return RankGang.open(
        GpuDoubles.factory(new HostCommunicators(HostOptions.defaults().withFolder(folder))),
        nranks,
        timeout);
  }

  private static int graphLaunches() {
    return DoubleLibraries.cudaControls().cudaDoubleGraphLaunches();
  }

  @BeforeEach
  void forgetEarlierWork() {
    int unused = graphLaunches();
  }

  @AfterEach
  void nothingIsLeaked() {
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  private static CudaMemoryPool pool(Communicator communicator) {
    return CudaMemoryPool.open(
        GpuDoubles.device(communicator.rank()), CudaMemoryPool.Kind.DEVICE, 8 << 20);
  }

  private static TypedBuffer ints(CudaMemory memory, long first, long count) {
    return TypedBuffer.of(new DeviceBuffer(memory), 4 * first, DataType.INT32, count);
  }

  private static Recording sum(Communicator communicator, TypedBuffer data) {
    return StepRecording.record(
        communicator, MovedBuffers.REFUSE, body -> body.allReduce(data, ReduceOp.SUM));
  }

  private static void checkSum(Communicator communicator, TypedBuffer data) {
    int nranks = communicator.nranks();
    Values.check("sum", data, i -> Values.reduced(DataType.INT32, ReduceOp.SUM, nranks, i));
  }

  /** Several replays with different contents, and other operations in between. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 4})
  void replaysComputeTheSameAsRuns(int nranks) {
    int rounds = 40;
    try (RankGang gang = gang(nranks, LONG)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory memory = pool.take(BYTES)) {
              TypedBuffer data = ints(memory, 0, COUNT);
              TypedBuffer own = ints(memory, COUNT, COUNT);
              TypedBuffer all = ints(memory, 2 * COUNT, (long) nranks * COUNT);
              try (Recording recording =
                  StepRecording.record(
                      communicator,
                      MovedBuffers.REFUSE,
                      body -> {
                        body.allReduce(data, ReduceOp.SUM);
                        body.allGather(own, all);
                        body.broadcast(own, nranks - 1);
                      })) {
                assertThat(recording.whyNoGraph()).isEmpty();
                for (int round = 0; round < rounds; round++) {
                  Values.fill(data, communicator.rank());
                  Values.fill(own, communicator.rank() + round % 8);
                  recording.replay();
                  checkSum(communicator, data);
                  int seed = round % 8;
                  Values.check("all", all, i -> Values.of((int) (i / COUNT) + seed, i % COUNT));
                  Values.check("broadcast", own, i -> Values.of(nranks - 1 + seed, i));
                  if (round % 10 == 0) {
                    communicator.allReduce(own, ReduceOp.MAX);
                  }
                }
                assertThat(recording.statistics().replays()).isEqualTo(rounds);
              }
            }
            assertThat(communicator.metrics().calls(OperationKind.BROADCAST)).isEqualTo(rounds);
          });
    }
    assertThat(graphLaunches()).isEqualTo(nranks * rounds);
  }

  /**
   * Three graphs: pairs use the other one of NCCL's communicators, after the earlier collectives.
   */
  @Test
  void pairsBetweenCollectivesKeepTheirPlace() {
    int nranks = 3;
    try (RankGang gang = gang(nranks, LONG)) {
      gang.run(
          communicator -> {
            int rank = communicator.rank();
            int next = (rank + 1) % nranks;
            int before = (rank + nranks - 1) % nranks;
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory memory = pool.take(BYTES)) {
              TypedBuffer data = ints(memory, 0, COUNT);
              TypedBuffer other = ints(memory, COUNT, COUNT);
              Recording recording =
                  StepRecording.record(
                      communicator,
                      MovedBuffers.REFUSE,
                      body -> {
                        body.broadcast(data, 1);
                        body.runGroup(List.of(new Send(data, next), new Receive(other, before)));
                        body.allReduce(other, ReduceOp.SUM);
                      });
              for (int round = 0; round < 5; round++) {
                Values.fill(data, rank + 7 * round);
                recording.replay();
                int seed = 1 + 7 * round;
                Values.check("sum", other, i -> nranks * Values.of(seed, i));
              }
              recording.close();
            }
          });
    }
    assertThat(graphLaunches()).isEqualTo(nranks * 5 * 3);
  }

  @Test
  void raggedAllToAllIsPartOfAGraph() {
    int nranks = 3;
    try (RankGang gang = gang(nranks, LONG)) {
      gang.run(
          communicator -> {
            int rank = communicator.rank();
            RaggedLayout layout = RaggedContract.layout(rank, nranks, 2, 3, RaggedContract.MIXED);
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory from = pool.take(BYTES);
                CudaMemory to = pool.take(BYTES)) {
              TypedBuffer send = ints(from, 0, 99_999);
              TypedBuffer receive = ints(to, 0, 99_999);
              Values.fill(send, rank);
              Values.fill(receive, i -> -1);
              try (Recording recording =
                  StepRecording.record(
                      communicator,
                      MovedBuffers.REFUSE,
                      body -> body.raggedAllToAll(send, receive, layout))) {
                assertThat(recording.whyNoGraph()).isEmpty();
                recording.replay();
                recording.replay();
              }
              communicator.barrier();
              TypedBuffer again = ints(from, 100_000, 99_999);
              Values.fill(again, i -> -1);
              communicator.raggedAllToAll(send, again, layout);
              Values.check("ragged", receive, i -> Values.get(again, i));
            }
          });
    }
  }

  @Test
  void submittedReplayRunsAfterEarlierWorkOfItsLane() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            CudaDevice device = GpuDoubles.device(communicator.rank());
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemoryPool pinned =
                    CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 8 << 20);
                CudaMemory memory = pool.take(BYTES);
                CudaMemory host = pinned.take(4 * COUNT);
                CudaLane lane =
                    CudaLane.open(device, "lane-" + communicator.rank(), LONG, Priority.NORMAL)) {
              TypedBuffer data = ints(memory, 0, COUNT);
              Values.fill(ints(host, 0, COUNT), communicator.rank());
              try (Recording recording = sum(communicator, data)) {
                for (int round = 0; round < 3; round++) {
                  lane.submit(
                      "upload",
                      () ->
                          lane.stream().copyToDevice(data.address(), host.address(), data.bytes()));
                  recording.submit(lane).await(Deadline.after(LONG));
                  checkSum(communicator, data);
                }
              }
            }
          });
    }
  }

  /** The recording is closed while its replay waits on a lane. The graph ends after the replay. */
  @Test
  void graphClosedDuringASubmittedReplayEndsAfterIt() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            HostEvent gate = new HostEvent("for the test");
            try (CudaMemoryPool pool = pool(communicator);
                HostLane lane = HostLane.open("lane-" + communicator.rank(), LONG)) {
              CudaMemory memory = pool.take(BYTES);
              TypedBuffer data = ints(memory, 0, COUNT);
              Values.fill(data, communicator.rank());
              Recording recording = sum(communicator, data);
              Event before = lane.submit("before", () -> {}, gate);
              Event replayed = recording.submit(lane);
              recording.close();
              gate.complete();
              replayed.await(Deadline.after(LONG));
              before.await(Deadline.after(LONG));
              checkSum(communicator, data);
              memory.close();
              await().until(() -> pool.takenBytes() == 0);
            }
          });
    }
    assertThat(graphLaunches()).isEqualTo(2);
  }

  /** The holder closes the memory. The graph still refers to it, but every replay is refused. */
  @Test
  void graphKeepsItsMemoryAndReplaysAreRefused() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            CudaMemoryPool pool = pool(communicator);
            CudaMemory memory = pool.take(BYTES);
            Recording recording = sum(communicator, ints(memory, 0, COUNT));
            communicator.barrier();
            if (communicator.rank() == 1) {
              memory.close();
            }
            assertThat(pool.takenBytes()).isPositive();
            CollectiveException refusal =
                catchThrowableOfType(CollectiveException.class, recording::replay);
            assertThat(refusal.kind()).isEqualTo(Kind.INVALID);
            assertThat(refusal.ranks()).containsExactly(1);
            assertThat(refusal).hasMessageContaining("the device memory was closed");
            assertThat(pool.takenBytes()).isPositive();
            recording.close();
            memory.close();
            assertThat(pool.takenBytes()).isZero();
            assertThatThrownBy(recording::replay).hasMessageContaining("recording was closed");
            pool.close();
          });
    }
    assertThat(graphLaunches()).isZero();
  }

  /** Records the live objects when its memory may be freed. */
  private static final class Watched implements BufferOwner {
    private final CudaMemory memory;
    private final boolean refuses;
    private volatile String atTheEnd = "";

    private Watched(CudaMemory memory, boolean refuses) {
      this.memory = memory;
      this.refuses = refuses;
    }

    @Override
    public long address() {
      return memory.address();
    }

    @Override
    public long bytes() {
      return memory.bytes();
    }

    @Override
    public void usedUntil(Event event) {
      if (refuses) {
        throw new IllegalStateException("for the test");
      }
      event.whenReleased(() -> atTheEnd = DoubleLibraries.live());
    }
  }

  /** NCCL may enqueue captured work on its own thread until it is aborted. */
  @Test
  void memoryOfACaptureThatFailedIsKeptUntilNcclIsAborted() {
    try (RankGang gang = gang(1, LONG)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory memory = pool.take(BYTES)) {
              Watched owner = new Watched(memory, false);
              TypedBuffer own = TypedBuffer.of(owner, 0, DataType.INT32, COUNT);
              TypedBuffer all =
                  TypedBuffer.of(new Watched(memory, true), 4 * COUNT, DataType.INT32, COUNT);
              assertThatThrownBy(
                      () ->
                          StepRecording.record(
                              communicator,
                              MovedBuffers.REFUSE,
                              recorded -> recorded.allGather(own, all)))
                  .hasMessageContaining("for the test");
              await().until(() -> !owner.atTheEnd.isEmpty());
              assertThat(owner.atTheEnd).doesNotContain("nccl communicators: 2");
            }
          });
    }
  }

  /** Memory that its owner moves, as a pool that frees space would. */
  private static final class Movable implements BufferOwner {
    private CudaMemory memory;

    private Movable(CudaMemory memory) {
      this.memory = memory;
    }

    @Override
    public long address() {
      return memory.address();
    }

    @Override
    public long bytes() {
      return memory.bytes();
    }
  }

  @ParameterizedTest
  @EnumSource
  void bufferThatMovedIsCapturedAgainOrRefused(MovedBuffers policy) {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory first = pool.take(BYTES);
                CudaMemory second = pool.take(BYTES)) {
              Movable owner = new Movable(first);
              TypedBuffer data = TypedBuffer.of(owner, 0, DataType.INT32, COUNT);
              try (Recording recording =
                  StepRecording.record(
                      communicator, policy, body -> body.allReduce(data, ReduceOp.SUM))) {
                Values.fill(data, communicator.rank());
                recording.replay();
                checkSum(communicator, data);
                communicator.barrier();
                if (communicator.rank() == 1) {
                  owner.memory = second;
                }
                Values.fill(data.current(), communicator.rank());
                if (policy == MovedBuffers.REFUSE) {
                  assertThatThrownBy(recording::replay).hasMessageContaining("moved to");
                } else {
                  recording.replay();
                  checkSum(communicator, data.current());
                  recording.replay();
                }
              }
            }
          });
    }
    assertThat(graphLaunches()).isEqualTo(policy == MovedBuffers.REFUSE ? 2 : 6);
  }

  /** One of the two ranks has its data on the host. Neither has a graph, and both know why. */
  @Test
  void stepsThatNeedTheHostAreReplayedByTheHost() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory memory = pool.take(BYTES)) {
              TypedBuffer data =
                  communicator.rank() == 0
                      ? ints(memory, 0, COUNT)
                      : TypedBuffer.wrap(ByteBuffer.allocateDirect(4 * COUNT), DataType.INT32);
              try (Recording recording = sum(communicator, data)) {
                assertThat(recording.whyNoGraph().orElseThrow())
                    .startsWith("on rank 1, step 0: ")
                    .endsWith("is memory of the host");
                Values.fill(data, communicator.rank());
                recording.replay();
                checkSum(communicator, data);
              }
              assertNoGraph(communicator, body -> body.barrier(), "a barrier runs on the hosts");
              TypedBuffer onGpu = ints(memory, 0, COUNT);
              assertNoGraph(
                  communicator,
                  body -> body.allReduce(onGpu.as(DataType.FLOAT16), ReduceOp.SUM),
                  "is reduced on the hosts");
              assertNoGraph(
                  communicator, body -> body.allToAll(onGpu, onGpu), "all-to-all in place");
            }
          });
    }
    assertThat(graphLaunches()).isZero();
  }

  private static void assertNoGraph(
      Communicator communicator, Consumer<Communicator> body, String reason) {
    try (Recording recording = StepRecording.record(communicator, MovedBuffers.REFUSE, body)) {
      assertThat(recording.whyNoGraph().orElseThrow()).contains(reason);
      recording.replay();
    }
  }

  /** Nothing runs any more when the failure is thrown, and nothing refers to the memory. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void failureInsideAReplayFailsAllRanks(boolean hangs) {
    try (RankGang gang = gang(3, hangs ? Duration.ofSeconds(3) : LONG)) {
      gang.run(
          communicator -> {
            try (CudaMemoryPool pool = pool(communicator);
                CudaMemory memory = pool.take(BYTES)) {
              Recording recording = sum(communicator, ints(memory, 0, COUNT));
              recording.replay();
              communicator.barrier();
              if (communicator.rank() == 0) {
                if (hangs) {
                  DoubleLibraries.ncclControls().ncclDoubleHang(1);
                } else {
                  DoubleLibraries.ncclControls().ncclDoubleFailNext(NcclLibrary.REMOTE_ERROR);
                }
              }
              communicator.barrier();
              CollectiveException failure =
                  catchThrowableOfType(CollectiveException.class, recording::replay);
              assertThat(failure).isNotNull();
              assertThat(failure.kind()).isIn(Kind.DEAD, Kind.TIMEOUT, Kind.ABORTED);
              memory.close();
              await().until(() -> pool.takenBytes() == 0);
              assertThatThrownBy(recording::replay).isInstanceOf(CollectiveException.class);
              recording.close();
            }
          });
    }
  }

  /** NCCL waits without end for graphs that refer to it, so they end before it. */
  @Test
  void recordingMayOutliveItsCommunicator() {
    List<Recording> recordings;
    List<CudaMemoryPool> pools;
    try (RankGang gang = gang(2, LONG)) {
      pools = gang.ask(NcclGraphTest::pool);
      recordings =
          gang.ask(
              communicator -> {
                CudaMemory memory = pools.get(communicator.rank()).take(BYTES);
                Recording recording = sum(communicator, ints(memory, 0, COUNT));
                memory.close();
                return recording;
              });
      assertThat(DoubleLibraries.live()).contains("graphs to launch: 2");
    }
    assertThat(DoubleLibraries.live()).doesNotContain("graphs");
    recordings.forEach(Recording::close);
    pools.forEach(pool -> assertThat(pool.takenBytes()).isZero());
    pools.forEach(CudaMemoryPool::close);
  }
}
