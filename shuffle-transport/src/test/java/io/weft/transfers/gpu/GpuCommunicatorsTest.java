package io.weft.transfers.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.UnavailableLibraryException;
import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.PathRules.PathEnd;
import io.weft.shuffle.peer.TransportMode;
import io.weft.transfers.gpu.GpuCommunicators.GpuEndpoint;
import io.weft.transfers.gpu.TransferGpu.HostPathCommunicator;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Both ends choose the same path, also if NCCL fails at only one of them. */
class GpuCommunicatorsTest {
  private static final CommunicatorOptions OPTIONS =
      CommunicatorOptions.DEFAULT.withTimeout(Duration.ofSeconds(20));

  private final AtomicInteger attempts = new AtomicInteger();
  private boolean encrypted;
  private String secondKernel = "one";
  private String secondPids = "pid:[1]";

  /** A stand-in for NCCL: communicators within a process. */
  private CommunicatorFactory works() {
    return (bootstrap, options) -> {
      attempts.incrementAndGet();
      return LocalCommunicator.create(bootstrap, options);
    };
  }

  private CommunicatorFactory fails(Kind kind) {
    return (bootstrap, options) -> {
      attempts.incrementAndGet();
      throw new CollectiveException(kind, List.of(), "no socket of NCCL");
    };
  }

  private GpuCommunicators end(int rank, Supplier<CommunicatorFactory> nccl) {
    GpuEnd gpu = GpuEnd.of("uuid-" + rank, 0, "a GPU", "2.28.3");
    return new GpuCommunicators(
        new GpuEndpoint(
            rank + "@life",
            new PathEnd(rank == 0 ? "one" : secondKernel, gpu),
            rank == 0 ? "pid:[1]" : secondPids),
        new PathRules(TransportMode.AUTO, encrypted, false),
        nccl,
        LocalCommunicator::create);
  }

  private List<GpuCommunicators> ends(CommunicatorFactory first, CommunicatorFactory second) {
    return List.of(end(0, () -> first), end(1, () -> second));
  }

  /** The result of each end: a communicator or a failure. */
  private static List<Object> create(List<GpuCommunicators> ends) throws Exception {
    List<Bootstrap> bootstraps = ThreadBootstrap.open(2);
    List<CompletableFuture<Object>> made = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      GpuCommunicators end = ends.get(rank);
      Bootstrap bootstrap = bootstraps.get(rank);
      made.add(
          CompletableFuture.supplyAsync(
              () -> {
                Communicator[] communicator = new Communicator[1];
                Throwable failure =
                    catchThrowable(() -> communicator[0] = end.create(bootstrap, OPTIONS));
                return failure == null ? communicator[0] : failure;
              },
              task -> new Thread(task, "gpu-communicators-test").start()));
    }
    List<Object> results = new ArrayList<>();
    for (CompletableFuture<Object> each : made) {
      results.add(each.get(60, TimeUnit.SECONDS));
    }
    return results;
  }

  private static void assertWorkAndClose(List<Object> made, Class<? extends Communicator> kind)
      throws Exception {
    assertThat(made).allSatisfy(each -> assertThat(each).isInstanceOf(kind));
    CompletableFuture<Void> other =
        CompletableFuture.runAsync(() -> ((Communicator) made.get(1)).barrier());
    ((Communicator) made.get(0)).barrier();
    other.get(60, TimeUnit.SECONDS);
    made.forEach(each -> ((Communicator) each).close());
  }

  @Test
  void ncclIsUsedWhereBothEndsCan() throws Exception {
    assertWorkAndClose(create(ends(works(), works())), LocalCommunicator.class);
    assertThat(attempts).hasValue(2);
  }

  @Test
  void afterAFailedStartOfNcclBothEndsUseTheHosts() throws Exception {
    List<GpuCommunicators> ends = ends(fails(Kind.IO), fails(Kind.IO));
    assertWorkAndClose(create(ends), HostPathCommunicator.class);
    assertThat(attempts).hasValue(2);
    assertWorkAndClose(create(ends), HostPathCommunicator.class);
    assertThat(attempts).as("NCCL is not tried again").hasValue(2);
  }

  @Test
  void aFailureThatOnlyOneEndKnowsCountsForBoth() throws Exception {
    List<GpuCommunicators> ends = ends(fails(Kind.MISMATCH), fails(Kind.ABORTED));
    assertWorkAndClose(create(ends), HostPathCommunicator.class);
  }

  @Test
  void anEndThatGivesUpDoesNotChangeThePath() throws Exception {
    assertThat(create(ends(fails(Kind.ABORTED), fails(Kind.DEAD))))
        .allSatisfy(
            each ->
                assertThat(each)
                    .isInstanceOfSatisfying(
                        CollectiveException.class,
                        e -> assertThat(e).hasMessageContaining("no socket of NCCL")));
  }

  @Test
  void aGpuThatCannotBeOpenedIsAReasonForBoth() throws Exception {
    List<GpuCommunicators> ends =
        List.of(
            end(0, this::works),
            end(
                1,
                () -> {
                  throw new UnavailableLibraryException("the driver is gone");
                }));
    assertWorkAndClose(create(ends), HostPathCommunicator.class);
    assertThat(attempts).hasValue(0);
  }

  private static void assertMayMap(List<Object> made, boolean expected) throws Exception {
    assertWorkAndClose(made, HostPathCommunicator.class);
    assertThat(made)
        .allSatisfy(each -> assertThat(((HostPathCommunicator) each).mayMap()).isEqualTo(expected));
  }

  /** Otherwise memory could be freed while an invisible process still maps it. */
  @Test
  void endsOfOneKernelMapMemoryIfTheySeeEachOthersProcesses() throws Exception {
    assertMayMap(create(ends(fails(Kind.IO), fails(Kind.IO))), true);
    secondPids = "pid:[2]";
    assertMayMap(create(ends(fails(Kind.IO), fails(Kind.IO))), false);
    secondPids = "pid:[1]";
    secondKernel = "two";
    assertMayMap(create(ends(fails(Kind.IO), fails(Kind.IO))), false);
  }

  @Test
  void whereSparkEncryptsNcclIsNotTriedBetweenHosts() throws Exception {
    encrypted = true;
    secondKernel = "two";
    assertWorkAndClose(create(ends(works(), works())), HostPathCommunicator.class);
    assertThat(attempts).hasValue(0);
  }
}
