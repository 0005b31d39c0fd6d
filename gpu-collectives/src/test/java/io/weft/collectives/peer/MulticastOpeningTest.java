package io.weft.collectives.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Communicator;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Deadline;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.VirtualMemory;
import io.weft.device.descriptor.OpenDescriptors;
import io.weft.device.library.DoubleLibraries;
import io.weft.device.library.UsesDoubles;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Ranks that cannot have a window by multicast, or do not come to its end. */
@UsesDoubles
class MulticastOpeningTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int EVERY_SECOND_DEVICE = 2;

  private long socketsBefore;
  private long filesBefore;

  @BeforeEach
  void countDescriptors() {
    DoubleLibraries.cuda();
    socketsBefore = OpenDescriptors.count("socket:");
    filesBefore = OpenDescriptors.count("weft-cuda-double");
  }

  @AfterEach
  void nothingIsLeftBehind() {
    DoubleLibraries.assertClean();
    assertThat(OpenDescriptors.count("socket:")).isEqualTo(socketsBefore);
    assertThat(OpenDescriptors.count("weft-cuda-double")).isEqualTo(filesBefore);
  }

  /** What a rank does before it has a window. */
  private interface Preparation {
    void run(Communicator communicator);
  }

  private static CollectiveException failure(
      Communicator communicator, int ordinal, Preparation preparation) {
    try (CudaDevice device = DoubleLibraries.cuda().open(ordinal);
        CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL);
        CudaMemoryPool pool =
            CudaMemoryPool.open(device, VirtualMemory.forMulticast(device), 8 << 20);
        CudaMemory memory = pool.take(1000)) {
      return catchThrowableOfType(
          CollectiveException.class,
          () ->
              MulticastWindow.open(
                  communicator,
                  memory,
                  stream,
                  Deadline.after(LONG),
                  () -> preparation.run(communicator)));
    }
  }

  private static List<CollectiveException> failures(
      int nranks, int everyDevice, Preparation preparation) {
    try (RankGang gang = RankGang.open(LocalCommunicator::create, nranks, LONG)) {
      return gang.ask(
          communicator -> failure(communicator, communicator.rank() * everyDevice, preparation));
    }
  }

  private static void doNothing(Communicator communicator) {
    assertThat(communicator.failure()).isEmpty();
  }

  @Test
  void twoRanksOnOneGpuAreNamed() {
    assertThat(failures(2, 0, MulticastOpeningTest::doNothing))
        .allSatisfy(
            failure -> {
              assertThat(failure.kind()).isEqualTo(Kind.INVALID);
              assertThat(failure.ranks()).containsExactly(0, 1);
              assertThat(failure)
                  .hasMessageContaining("rank 0 and rank 1 are both on GPU")
                  .hasMessageContaining("multicast takes one rank for each GPU");
            });
  }

  @Test
  void oneRankHasNobodyToWriteTo() {
    assertThat(failures(1, 0, MulticastOpeningTest::doNothing).get(0))
        .hasMessageContaining("the 1 ranks have to be 2 to 16 and on one host");
  }

  /** Such as kernels that a driver refuses. */
  @Test
  void rankThatCannotPrepareIsNamedOnAll() {
    List<CollectiveException> failures =
        failures(
            3,
            EVERY_SECOND_DEVICE,
            communicator -> {
              if (communicator.rank() == 2) {
                throw new IllegalStateException("it is not prepared");
              }
            });
    assertThat(failures)
        .allSatisfy(
            failure ->
                assertThat(failure)
                    .hasMessage("rank 2 cannot share memory by multicast: it is not prepared"));
  }

  @Test
  void rankThatGoesMeanwhileHoldsUpNobody() {
    List<CollectiveException> failures =
        failures(
            3,
            EVERY_SECOND_DEVICE,
            communicator -> {
              if (communicator.rank() == 1) {
                communicator.abort("it goes");
              }
            });
    assertThat(failures).allSatisfy(failure -> assertThat(failure).hasMessageContaining("it goes"));
  }
}
