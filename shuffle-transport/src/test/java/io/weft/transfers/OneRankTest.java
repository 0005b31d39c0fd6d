package io.weft.transfers;

import static io.weft.transfers.Content.check;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.Receive;
import io.weft.collectives.Recording;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.nccl.NcclCommunicators;
import io.weft.collectives.nccl.NcclOptions;
import io.weft.collectives.symmetric.StepRecording;
import io.weft.device.cuda.CudaDevice;
import java.nio.file.Path;
import java.util.List;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** NCCL with one rank, the most for one GPU: all calls are made, but nothing is reduced. */
class OneRankTest {
  private static final int COUNT = 100_000;

  @TempDir Path folder;

  private final GpuArrays arrays = new GpuArrays();

  @BeforeAll
  static void needsGpu() {
    TestGpus.assume();
  }

  @AfterEach
  void nothingIsLeftBehind() {
    arrays.close();
    TestGpus.assertClean();
  }

  /** Runs an operation from one array on the GPU to another. */
  private void assertArrives(long seed, BiConsumer<Communicator, TypedBuffer[]> operation) {
    try (CudaDevice device = TestGpus.cuda().open(0)) {
      NcclCommunicators nccl =
          new NcclCommunicators(
              TestGpus.options(),
              NcclOptions.on(device),
              new HostCommunicators(HostOptions.defaults().withFolder(folder)));
      TypedBuffer host = Content.ints(COUNT, seed);
      TypedBuffer from = arrays.copy(0, host);
      TypedBuffer to = arrays.copy(0, Content.ints(COUNT, seed + 1));
      try (var bootstrap = ThreadBootstrap.open(1).get(0);
          Communicator communicator = nccl.create(bootstrap, CommunicatorOptions.DEFAULT)) {
        assertThat(communicator.nranks()).isEqualTo(1);
        operation.accept(communicator, new TypedBuffer[] {from, to});
      }
      check(arrays.toHost(to), seed);
    }
  }

  @Test
  void reductionsOfOneAreCopies() {
    assertArrives(1, (nccl, array) -> nccl.allReduce(array[0], array[1], ReduceOp.SUM));
    assertArrives(2, (nccl, array) -> nccl.reduce(array[0], array[1], ReduceOp.MAX, 0));
    assertArrives(3, (nccl, array) -> nccl.reduceScatter(array[0], array[1], ReduceOp.SUM));
  }

  @Test
  void movesOfOneAreCopies() {
    assertArrives(1, (nccl, array) -> nccl.allGather(array[0], array[1]));
    assertArrives(2, (nccl, array) -> nccl.allToAll(array[0], array[1]));
    assertArrives(3, (nccl, array) -> nccl.gather(array[0], array[1], 0));
    assertArrives(4, (nccl, array) -> nccl.scatter(array[0], array[1], 0));
  }

  @Test
  void aRankSendsToItself() {
    assertArrives(
        1,
        (nccl, array) -> nccl.runGroup(List.of(new Send(array[0], 0), new Receive(array[1], 0))));
  }

  /** A recorded graph that the device replays. */
  @Test
  void graphsOfOneAreReplayed() {
    assertArrives(
        1,
        (nccl, array) -> {
          try (Recording recording =
              StepRecording.record(
                  nccl,
                  MovedBuffers.REFUSE,
                  body -> {
                    body.allReduce(array[0], array[1], ReduceOp.SUM);
                    body.allGather(array[0], array[1]);
                    body.runGroup(List.of(new Send(array[0], 0), new Receive(array[1], 0)));
                  })) {
            assertThat(recording.whyNoGraph()).isEmpty();
            for (int round = 0; round < 3; round++) {
              recording.replay();
            }
          }
        });
  }

  @Test
  void sixteenBitFloatsGoThroughTheHost() {
    assertArrives(
        1,
        (nccl, array) ->
            nccl.allReduce(array[0].as(DataType.INT16), array[1].as(DataType.INT16), ReduceOp.SUM));
  }
}
