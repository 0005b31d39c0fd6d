package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.OpenDescriptors;
import io.weft.device.cuda.VirtualMemory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ranks that cannot have a multicast window, or fail before it is open. */
@UsesDoubles
class MulticastOpeningTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int EVERY_SECOND_DEVICE = 2;

  /** All have bound their memory, and tell each other. */
  private static final int LAST_GATHER = 12;

  private long socketsBefore;
  private long filesBefore;

  @BeforeEach
  void countDescriptors() {
    DoubleLibraries.cuda();
    socketsBefore = OpenDescriptors.count("socket:");
    filesBefore = OpenDescriptors.count("weft-cuda-double");
  }

  @AfterEach
  void nothingIsLeaked() {
    DoubleLibraries.cudaControls().cudaDoubleFailBindings(0);
    DoubleLibraries.cudaControls().cudaDoubleFailUnbindings(0);
    DoubleLibraries.assertClean();
    assertThat(OpenDescriptors.count("socket:")).isEqualTo(socketsBefore);
    assertThat(OpenDescriptors.count("weft-cuda-double")).isEqualTo(filesBefore);
  }

  /** Runs on a rank before it opens a window. */
  private interface Preparation {
    void run(Communicator communicator);
  }

  /** Runs on a rank before its next all-gather on the host; the first one has number 1. */
  private interface Interruption {
    void at(int gather, Communicator communicator, CudaMemory memory);
  }

  private final Map<Integer, CudaMemoryPool> pools = new ConcurrentHashMap<>();

  private CollectiveException failure(
      Communicator communicator,
      int ordinal,
      Duration timeout,
      Preparation preparation,
      Interruption interruption) {
    try (CudaDevice device = DoubleLibraries.cuda().open(ordinal);
        CudaStream stream = CudaStream.open(device, "test", Priority.NORMAL);
        CudaMemoryPool pool =
            CudaMemoryPool.open(device, VirtualMemory.forMulticast(device), 8 << 20);
        CudaMemory memory = pool.take(1000)) {
      pools.put(communicator.rank(), pool);
      return catchThrowableOfType(
          CollectiveException.class,
          () ->
              MulticastWindow.open(
                  interrupted(communicator, memory, interruption),
                  memory,
                  stream,
                  Deadline.after(timeout),
                  () -> preparation.run(communicator)));
    }
  }

  private static Communicator interrupted(
      Communicator communicator, CudaMemory memory, Interruption interruption) {
    AtomicInteger gathers = new AtomicInteger();
    return (Communicator)
        Proxy.newProxyInstance(
            MulticastOpeningTest.class.getClassLoader(),
            new Class<?>[] {Communicator.class},
            (proxy, method, arguments) -> {
              if (method.getName().equals("allGather")) {
                interruption.at(gathers.incrementAndGet(), communicator, memory);
              }
              try {
                return method.invoke(communicator, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  private List<CollectiveException> failures(int nranks, int everyDevice, Preparation preparation) {
    try (RankGang gang = RankGang.open(LocalCommunicator::create, nranks, LONG)) {
      return gang.ask(
          communicator ->
              failure(
                  communicator,
                  communicator.rank() * everyDevice,
                  LONG,
                  preparation,
                  (gather, rank, memory) -> {}));
    }
  }

  private List<CollectiveException> failures(Duration timeout, Interruption interruption) {
    try (RankGang gang = RankGang.open(LocalCommunicator::create, 3, timeout)) {
      return gang.ask(
          communicator ->
              failure(
                  communicator,
                  communicator.rank() * EVERY_SECOND_DEVICE,
                  timeout,
                  MulticastOpeningTest::doNothing,
                  interruption));
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
  void oneRankAloneIsRefused() {
    assertThat(failures(1, 0, MulticastOpeningTest::doNothing).get(0))
        .hasMessageContaining("the 1 ranks must be 2 to 16 and on one host");
  }

  /** For example, a driver rejects the kernels. */
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
  void rankThatEndsMeanwhileDelaysNoRank() {
    List<CollectiveException> failures =
        failures(
            3,
            EVERY_SECOND_DEVICE,
            communicator -> {
              if (communicator.rank() == 1) {
                communicator.abort("it ends");
              }
            });
    assertThat(failures).allSatisfy(failure -> assertThat(failure).hasMessageContaining("it ends"));
  }

  /** Before the object exists, while ranks join it, and when they have bound their memory. */
  @ParameterizedTest
  @ValueSource(ints = {7, 8, 9, 10, 11, LAST_GATHER})
  void rankThatEndsLaterDelaysNoRankAndKeepsNoMemory(int last) {
    List<CollectiveException> failures =
        failures(
            LONG,
            (gather, communicator, memory) -> {
              if (gather == last && communicator.rank() == 1) {
                communicator.abort("it ends");
              }
            });
    assertThat(failures).allSatisfy(failure -> assertThat(failure).hasMessageContaining("it ends"));
  }

  /** No rank has written anything, so no rank has to keep its memory. */
  @Test
  void memoryIsFreedEvenWhileARankIsStuck() {
    List<CollectiveException> failures =
        failures(
            Duration.ofSeconds(2),
            (gather, communicator, memory) -> {
              if (gather == LAST_GATHER) {
                memory.close();
                assertThat(pools.get(communicator.rank()).takenBytes()).isPositive();
              }
              if (gather == LAST_GATHER && communicator.rank() == 1) {
                Awaitility.await()
                    .until(() -> pools.get(0).takenBytes() + pools.get(2).takenBytes() == 0);
              }
            });
    assertThat(failures)
        .allSatisfy(
            failure -> {
              assertThat(failure.kind()).isEqualTo(Kind.TIMEOUT);
              assertThat(failure.ranks()).containsExactly(1);
            });
  }

  /** This is not a refusal, after which the ranks would go on. */
  @Test
  void memoryThatCannotBeUnboundIsAnErrorOnAll() {
    DoubleLibraries.cudaControls().cudaDoubleFailBindings(1);
    DoubleLibraries.cudaControls().cudaDoubleFailUnbindings(1);
    assertThat(failures(3, EVERY_SECOND_DEVICE, MulticastOpeningTest::doNothing))
        .allSatisfy(
            failure -> {
              assertThat(failure.kind()).isEqualTo(Kind.IO);
              assertThat(failure)
                  .hasMessageMatching("rank . cannot end memory for multicast: unbinding .*");
            });
  }
}
