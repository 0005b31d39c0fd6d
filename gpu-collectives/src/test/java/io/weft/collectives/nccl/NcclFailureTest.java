package io.weft.collectives.nccl;

import static io.weft.collectives.contract.CommunicatorContract.buffer;
import static io.weft.collectives.contract.CommunicatorContract.filled;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllReduce;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.nccl.NcclCommunicators.RankIdentity;
import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Event;
import io.weft.device.Lane;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests beyond the contract: device memory, and failures of NCCL itself. */
@UsesDoubles
class NcclFailureTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  @TempDir Path folder;

  private CommunicatorFactory hosts() {
    return new HostCommunicators(HostOptions.defaults().withFolder(folder));
  }

  private RankGang gang(int nranks, Duration timeout) {
    return RankGang.open(GpuDoubles.factory(hosts()), nranks, timeout);
  }

  @AfterEach
  void nothingIsLeaked() {
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  /** Memory of a rank's device. The double's memory can be read here, because it is host memory. */
  private static TypedBuffer on(CudaMemory memory, int rank, DataType type) {
    TypedBuffer typed =
        TypedBuffer.of(new DeviceBuffer(memory), 0, type, memory.bytes() / type.bytes());
    Values.fill(typed, rank);
    return typed;
  }

  /** The streams of NCCL are independent of the lane's, where many copies are still pending. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void submittedOperationRunsAfterEarlierWorkOfItsLane(boolean inGroup) {
    int bytes = 1 << 20;
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            CudaDevice device = GpuDoubles.device(communicator.rank());
            try (CudaMemoryPool pinned =
                    CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, bytes);
                CudaMemory host = pinned.take(bytes);
                CudaMemoryPool pool =
                    CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 2L * bytes);
                CudaMemory memory = pool.take(bytes);
                CudaLane lane =
                    CudaLane.open(
                        device, "up-" + communicator.rank(), LONG, Lane.Priority.HIGHEST)) {
              on(host, communicator.rank(), DataType.INT8);
              TypedBuffer data = TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT8, bytes);
              Event uploaded =
                  lane.submit(
                      "uploads",
                      () -> {
                        for (int i = 0; i < 100; i++) {
                          lane.stream().copyToDevice(data.address(), host.address(), bytes);
                        }
                      });
              Operation sum = new AllReduce(data, data, ReduceOp.SUM);
              Event event =
                  inGroup
                      ? communicator.submitGroup(List.of(sum), lane)
                      : communicator.submit(sum, lane);
              event.await(Deadline.after(LONG));
              uploaded.await(Deadline.after(LONG));
              Values.check("sum", data, i -> Values.reduced(DataType.INT8, ReduceOp.SUM, 2, i));
            }
          });
    }
  }

  @Test
  void reductionsThatNcclRoundsDifferentlyRunOnTheHost() {
    try (RankGang gang = gang(2, LONG)) {
      gang.run(
          communicator -> {
            int rank = communicator.rank();
            try (CudaMemoryPool pool =
                    CudaMemoryPool.open(
                        GpuDoubles.device(rank), CudaMemoryPool.Kind.DEVICE, 1 << 20);
                CudaMemory memory = pool.take(20_000)) {
              TypedBuffer data = on(memory, rank, DataType.FLOAT16);
              communicator.allReduce(data, ReduceOp.AVERAGE);
              Values.check(
                  "average", data, i -> Values.reduced(DataType.FLOAT16, ReduceOp.AVERAGE, 2, i));
            }
            assertThat(communicator.metrics().total(Algorithm.THROUGH_HOST).calls()).isOne();
          });
    }
  }

  @Test
  void errorInsideNcclFailsEveryRank() {
    try (RankGang gang = gang(3, LONG)) {
      DoubleLibraries.ncclControls().ncclDoubleFailNext(NcclLibrary.REMOTE_ERROR);
      List<CollectiveException> failures =
          gang.ask(
              communicator ->
                  catchThrowableOfType(
                      CollectiveException.class,
                      () -> communicator.allReduce(buffer(DataType.INT32, 10), ReduceOp.SUM)));
      assertThat(failures).doesNotContainNull();
      assertThat(failures)
          .allSatisfy(
              failure -> assertThat(failure).hasMessageContaining("failed in NCCL: remote"));
      assertThat(failures).extracting(CollectiveException::kind).contains(Kind.DEAD);
    }
  }

  /**
   * The second collective is staged while the first waits in NCCL for a rank that never arrives. If
   * the driver copied the memory, that copy would wait too, and no thread would check the deadline.
   */
  @Test
  void stagingAfterAStuckOperationDoesNotBlockTheCaller() {
    try (RankGang gang = gang(2, Duration.ofSeconds(4))) {
      DoubleLibraries.ncclControls().ncclDoubleHang(1);
      List<CollectiveException> failures =
          gang.ask(
              communicator ->
                  catchThrowableOfType(
                      CollectiveException.class,
                      () ->
                          communicator.runGroup(
                              List.of(sum(communicator, 1000), sum(communicator, 1_500_000)))));
      assertThat(failures).doesNotContainNull();
      assertThat(failures).extracting(CollectiveException::kind).contains(Kind.TIMEOUT);
    }
  }

  private static Operation sum(Communicator communicator, int count) {
    TypedBuffer data = filled(communicator, DataType.INT32, count);
    return new AllReduce(data, data, ReduceOp.SUM);
  }

  @Test
  void missingReceiverIsNamed() {
    try (RankGang gang = gang(2, Duration.ofSeconds(4))) {
      CollectiveException failure =
          catchThrowableOfType(
              CollectiveException.class,
              () -> gang.rank(0).send(filled(gang.rank(0), DataType.INT8, 3_000_000), 1));
      assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT);
      assertThat(failure.ranks()).containsExactly(1);
      assertThat(failure).hasMessageContaining("rank 1");
    }
  }

  @Test
  void twoRanksOnOneGpuAreRefusedByName() {
    CommunicatorFactory both = GpuDoubles.factory(3, hosts());
    assertThatThrownBy(() -> RankGang.open(both, 2, LONG))
        .hasMessageContaining("rank 0 and rank 1 are both on GPU")
        .hasMessageContaining("NCCL takes one rank for each GPU, and from 2.30.3 on several where")
        .hasMessageContaining("NCCL_MULTI_RANK_GPU_ENABLE=1 is set in the environment of all");
  }

  /** NCCL's environment allows it, from the version on that supports it. */
  @Test
  void ranksMayShareAGpuWhereNcclLetsThem() {
    UUID gpu = UUID.randomUUID();
    Map<String, String> set = Map.of("NCCL_MULTI_RANK_GPU_ENABLE", "1");
    RankIdentity shares = RankIdentity.of(23003, gpu, false, false, set);
    RankIdentity.check(List.of(shares, RankIdentity.decode(shares.encode())));
    for (RankIdentity other :
        List.of(
            RankIdentity.of(23003, gpu, false, false, Map.of()),
            RankIdentity.of(23003, gpu, false, false, Map.of("NCCL_MULTI_RANK_GPU_ENABLE", "0")))) {
      assertThatThrownBy(() -> RankIdentity.check(List.of(shares, other)))
          .hasMessageContaining("rank 0 and rank 1 are both on GPU " + gpu)
          .hasMessageContaining("these have 2.30.3");
    }
    RankIdentity old = RankIdentity.of(22907, gpu, false, false, set);
    assertThatThrownBy(() -> RankIdentity.check(List.of(old, old)))
        .hasMessageContaining("these have 2.29.7");
  }

  @Test
  void moreRanksThanAGpuTakesAreRefused() {
    UUID gpu = UUID.randomUUID();
    RankIdentity shares = new RankIdentity(23007, gpu, true, false, false, false);
    RankIdentity alone = new RankIdentity(23007, UUID.randomUUID(), true, true, false, false);
    RankIdentity.check(List.of(shares, alone, shares));
    assertThat(RankIdentity.shareGpus(List.of(shares, alone, shares))).isTrue();
    assertThat(RankIdentity.shareGpus(List.of(shares, alone))).isFalse();
    assertThatThrownBy(() -> RankIdentity.check(List.of(shares, alone, shares, shares)))
        .hasMessageContaining("rank 0 and rank 3 are both on GPU " + gpu)
        .hasMessageContaining("more than 2")
        .isInstanceOfSatisfying(
            CollectiveException.class, e -> assertThat(e.kind()).isEqualTo(Kind.INVALID));
    RankIdentity forced =
        RankIdentity.of(
            23007,
            gpu,
            false,
            false,
            Map.of("NCCL_MULTI_RANK_GPU_ENABLE", "1", "NCCL_NVLS_ENABLE", "1"));
    assertThatThrownBy(
            () -> RankIdentity.check(List.of(shares, RankIdentity.decode(forced.encode()))))
        .hasMessageContaining("does not take with NCCL_NVLS_ENABLE=1")
        .isInstanceOfSatisfying(
            CollectiveException.class, e -> assertThat(e.kind()).isEqualTo(Kind.INVALID));
  }

  /**
   * The device of one rank is closed when it opens its stream, after the ranks have compared their
   * GPUs.
   */
  @Test
  void rankThatCannotOpenItsStreamIsNamedByAll() {
    CudaDevice closed = DoubleLibraries.cuda().open(1);
    closed.close();
    CommunicatorFactory broken =
        new NcclCommunicators(DoubleLibraries.options(), NcclOptions.on(closed), hosts());
    CommunicatorFactory well = GpuDoubles.factory(0, hosts());
    long start = System.nanoTime();
    assertThatThrownBy(() -> RankGang.open(List.of(well, broken), Duration.ofMinutes(10)))
        .hasMessageContaining("rank 1 could not take part")
        .hasMessageContaining("was closed")
        .satisfies(
            failure ->
                assertThat(failure.getSuppressed()[0])
                    .hasMessageContaining("rank 1 could not take part"));
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofMinutes(2));
  }

  @Test
  void onlyOneRankWithCollectivesIsRefused() {
    RankIdentity pairs = new RankIdentity(23007, UUID.randomUUID(), false, false, true, false);
    RankIdentity all = new RankIdentity(23007, UUID.randomUUID(), false, false, false, false);
    assertThat(RankIdentity.decode(pairs.encode())).isEqualTo(pairs);
    assertThatThrownBy(() -> RankIdentity.check(List.of(pairs, all)))
        .hasMessageContaining("only one of rank 0 and rank 1 runs collectives");
    RankIdentity buffers = new RankIdentity(23007, UUID.randomUUID(), false, false, false, true);
    assertThat(RankIdentity.decode(buffers.encode())).isEqualTo(buffers);
    assertThatThrownBy(() -> RankIdentity.check(List.of(all, buffers)))
        .hasMessageContaining("only one of rank 0 and rank 1 has memory for buffers");
  }

  @Test
  void differentVersionsAreRefusedByName() {
    List<RankIdentity> ranks =
        List.of(
            new RankIdentity(22803, UUID.randomUUID(), false, false, false, false),
            new RankIdentity(22803, UUID.randomUUID(), false, false, false, false),
            RankIdentity.decode(
                new RankIdentity(23007, UUID.randomUUID(), true, false, false, false).encode()));
    CollectiveException failure =
        catchThrowableOfType(CollectiveException.class, () -> RankIdentity.check(ranks));
    assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
    assertThat(failure.ranks()).containsExactly(0, 2);
    assertThat(failure).hasMessageContaining("rank 0 has NCCL 2.28.3 but rank 2 has 2.30.7");
    RankIdentity.check(ranks.subList(0, 2));
  }

  @Test
  void rankThatClosesAloneDoesNotHang() {
    try (RankGang gang = gang(2, LONG)) {
      gang.rank(0).close();
      CollectiveException failure =
          catchThrowableOfType(CollectiveException.class, () -> gang.rank(1).barrier());
      assertThat(failure.ranks()).containsExactly(0);
    }
  }
}
