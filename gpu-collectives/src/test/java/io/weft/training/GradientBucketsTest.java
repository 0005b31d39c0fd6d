package io.weft.training;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.OperationKind;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class GradientBucketsTest {
  /** Three buckets: {d}, {c, b}, {a}. */
  private static final List<ParameterSpec> MODEL =
      List.of(floats("a", 1000), floats("b", 20), floats("c", 12), floats("d", 300));

  private static final long BUCKET_BYTES = 1024;

  @TempDir Path folder;

  private static ParameterSpec floats(String name, long count) {
    return new ParameterSpec(name, DataType.FLOAT32, count);
  }

  private static Deadline soon() {
    return Deadline.after(Duration.ofSeconds(60));
  }

  private static RankGang local(int nranks) {
    return RankGang.open(LocalCommunicator::create, nranks, Duration.ofSeconds(60));
  }

  private RankGang host(int nranks) {
    return RankGang.open(
        new HostCommunicators(HostOptions.defaults().withFolder(folder)),
        nranks,
        Duration.ofSeconds(60));
  }

  private static GradientBuckets open(Communicator communicator) {
    return open(communicator, MODEL, BUCKET_BYTES);
  }

  private static GradientBuckets open(
      Communicator communicator, List<ParameterSpec> model, long bucketBytes) {
    return GradientBuckets.open(communicator, model, bucketBytes, BucketMemory.ofProcess());
  }

  /** Runs on one rank with buckets of the model. */
  private interface Steps {
    void run(Communicator communicator, GradientBuckets buckets) throws Exception;
  }

  private static void onRanks(int nranks, RankGang.Part part) {
    try (RankGang gang = local(nranks)) {
      gang.run(part);
    }
  }

  private static void withBuckets(int nranks, Steps steps) {
    onRanks(
        nranks,
        communicator -> {
          try (GradientBuckets buckets = open(communicator)) {
            steps.run(communicator, buckets);
          }
        });
  }

  private static List<Integer> backwards() {
    return IntStream.range(0, MODEL.size()).map(i -> MODEL.size() - 1 - i).boxed().toList();
  }

  /** Every element of every rank differs, and averages are exact. */
  private static double value(int rank, int parameter, int step, long index) {
    return 4 * rank + 100 * parameter + 1000 * step + index % 7;
  }

  private static void runStep(
      GradientBuckets buckets, int rank, int nranks, int step, List<Integer> order) {
    for (int parameter : order) {
      Values.fill(buckets.gradient(parameter), i -> value(rank, parameter, step, i));
      buckets.ready(parameter);
    }
    buckets.await(soon());
    for (int parameter : order) {
      Values.check(
          "step " + step + ", " + MODEL.get(parameter),
          buckets.gradient(parameter),
          i -> value(0, parameter, step, i) + 2.0 * (nranks - 1));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "host"})
  void everyRankGetsTheAverageInAnyOrderOfItsGradients(String implementation) {
    try (RankGang gang = implementation.equals("host") ? host(3) : local(3)) {
      gang.run(
          communicator -> {
            Random random = new Random(communicator.rank());
            try (GradientBuckets buckets = open(communicator)) {
              assertThat(buckets.buckets()).isEqualTo(3);
              for (int step = 0; step < 25; step++) {
                List<Integer> order = new ArrayList<>(backwards());
                Collections.shuffle(order, random);
                runStep(buckets, communicator.rank(), 3, step, order);
              }
            }
            assertThat(communicator.metrics().calls(OperationKind.ALL_REDUCE)).isEqualTo(75);
          });
    }
  }

  @Test
  void bucketsInSymmetricWindowsAreReducedInPlace() {
    try (RankGang gang = host(2)) {
      gang.run(
          communicator -> {
            try (GradientBuckets buckets =
                GradientBuckets.open(communicator, MODEL, BUCKET_BYTES)) {
              for (int step = 0; step < 3; step++) {
                runStep(buckets, communicator.rank(), 2, step, backwards());
              }
              communicator.barrier();
            }
          });
    }
  }

  /** A loss of the gradients' type is averaged together with the last bucket. */
  @ParameterizedTest
  @CsvSource({"FLOAT32,4", "FLOAT64,5"})
  void theEndOfAStepIsReplayedWithOtherAverages(DataType type, int allReduces) {
    int steps = 5;
    try (RankGang gang = host(2)) {
      gang.run(
          communicator -> {
            try (Tensor loss = Tensor.allocate(TensorType.of(type, 1));
                GradientBuckets buckets = GradientBuckets.open(communicator, MODEL, BUCKET_BYTES)) {
              buckets.recordEnd(List.of(loss.buffer()));
              long before = communicator.metrics().calls(OperationKind.ALL_REDUCE);
              for (int step = 0; step < steps; step++) {
                int now = step;
                Values.fill(loss.buffer(), i -> 10 * now + 2 * communicator.rank());
                runStep(buckets, communicator.rank(), 2, step, backwards());
                Values.check("loss", loss.buffer(), i -> 10 * now + 1);
              }
              // Two buckets, the agreement, and the end, which has the last bucket if it can.
              assertThat(communicator.metrics().calls(OperationKind.ALL_REDUCE) - before)
                  .isEqualTo((long) steps * allReduces);
              communicator.barrier();
            }
          });
    }
  }

  @Test
  void aLargeLastBucketStartsWhenItIsReady() {
    List<ParameterSpec> model = List.of(floats("large", 20_000), floats("small", 10));
    try (RankGang gang = host(2)) {
      gang.run(
          communicator -> {
            try (Tensor loss = Tensor.allocate(TensorType.of(DataType.FLOAT32, 1));
                GradientBuckets buckets = GradientBuckets.open(communicator, model, BUCKET_BYTES)) {
              buckets.recordEnd(List.of(loss.buffer()));
              Values.fill(loss.buffer(), i -> 2 * communicator.rank());
              Values.fill(buckets.gradient(0), i -> 2 * communicator.rank());
              buckets.ready(1);
              buckets.ready(0);
              assertThat(buckets.started()).hasSize(2);
              buckets.await(soon());
              Values.check("gradient", buckets.gradient(0), i -> 1);
              Values.check("loss", loss.buffer(), i -> 1);
              communicator.barrier();
            }
          });
    }
  }

  /** The deadline applies to the recorded end too, and the step goes on after it. */
  @Test
  void aDeadlineEndsTheWaitForTheRecordedEnd() {
    CountDownLatch late = new CountDownLatch(1);
    try (RankGang gang = host(2)) {
      gang.run(
          communicator -> {
            try (Tensor loss = Tensor.allocate(TensorType.of(DataType.FLOAT32, 1));
                GradientBuckets buckets = open(communicator)) {
              buckets.recordEnd(List.of(loss.buffer()));
              fillAndReady(buckets, communicator.rank());
              Values.fill(loss.buffer(), i -> 2 * communicator.rank());
              buckets.started().forEach(event -> event.await(soon()));
              if (communicator.rank() == 0) {
                assertThatThrownBy(() -> buckets.await(Deadline.after(Duration.ofMillis(20))))
                    .isInstanceOf(EventTimeoutException.class);
                late.countDown();
              }
              assertThat(late.await(30, TimeUnit.SECONDS)).isTrue();
              buckets.await(soon());
              Values.check("loss", loss.buffer(), i -> 1);
            }
          });
    }
  }

  private static void fillAndReady(GradientBuckets buckets, int rank) {
    for (int parameter : backwards()) {
      Values.fill(buckets.gradient(parameter), i -> rank);
      buckets.ready(parameter);
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DataType.class,
      names = {"FLOAT32", "BFLOAT16"})
  void oneRankKeepsItsGradients(DataType type) {
    List<ParameterSpec> model = List.of(new ParameterSpec("w", type, 100));
    onRanks(
        1,
        communicator -> {
          try (GradientBuckets buckets = open(communicator, model, 1 << 20)) {
            Values.fill(buckets.gradient(0), i -> i);
            buckets.ready(0);
            buckets.await(soon());
            Values.check("gradient", buckets.gradient(0), i -> i);
          }
        });
  }

  @Test
  void aBucketIsAveragedBeforeTheOtherGradientsAreReady() {
    withBuckets(
        2,
        (communicator, buckets) -> {
          Values.fill(buckets.gradient(3), i -> communicator.rank());
          buckets.ready(3);
          assertThat(buckets.started()).hasSize(1);
          buckets.started().get(0).await(soon());
          Values.check("the last layer", buckets.gradient(3), i -> 0.5);
          List.of(2, 1, 0).forEach(buckets::ready);
          buckets.await(soon());
        });
  }

  @Test
  void aBucketWaitsForThoseBeforeItSoThatRanksKeepOneOrder() {
    withBuckets(
        1,
        (communicator, buckets) -> {
          buckets.ready(0);
          buckets.ready(1);
          buckets.ready(2);
          assertThat(buckets.started()).isEmpty();
          buckets.ready(3);
          assertThat(buckets.started()).hasSize(3);
          buckets.await(soon());
        });
  }

  @Test
  void ranksThatRegisterOtherParametersAllFailWithTheName() {
    onRanks(
        3,
        communicator -> {
          List<ParameterSpec> model =
              communicator.rank() == 2
                  ? List.of(floats("a", 1000), floats("c", 12), floats("b", 20), floats("d", 300))
                  : MODEL;
          CollectiveException failure =
              catchThrowableOfType(
                  CollectiveException.class, () -> open(communicator, model, BUCKET_BYTES));
          assertThat(failure.kind()).isEqualTo(CollectiveException.Kind.MISMATCH);
          assertThat(failure.ranks()).containsExactly(2);
          assertThat(failure)
              .hasMessageContaining("rank 2")
              .hasMessageContaining(model.get(1).name() + " (");
        });
  }

  @Test
  void anotherBucketSizeIsAMismatchToo() {
    onRanks(
        2,
        communicator ->
            assertThatThrownBy(() -> open(communicator, MODEL, BUCKET_BYTES + communicator.rank()))
                .isInstanceOf(CollectiveException.class)
                .hasMessageContaining("rank 1")
                .hasMessageContaining("buckets of"));
  }

  @Test
  void aGradientThatNeverComesFailsAllRanksByNameInsteadOfHangingThem() {
    withBuckets(
        2,
        (communicator, buckets) -> {
          List<Integer> mine = communicator.rank() == 1 ? List.of(3, 0) : backwards();
          mine.forEach(buckets::ready);
          Throwable failure = catchThrowable(() -> buckets.await(soon()));
          if (communicator.rank() == 1) {
            assertThat(failure)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("b, c")
                .hasMessageContaining("rank 1");
          } else {
            assertThat(failure)
                .isInstanceOf(EventFailedException.class)
                .hasMessageContaining("rank 1");
          }
        });
  }

  @Test
  void aParameterWithoutAPartInTheStepCountsAsZero() {
    withBuckets(
        2,
        (communicator, buckets) -> {
          Values.fill(buckets.gradient(0), i -> 8);
          if (communicator.rank() == 0) {
            buckets.ready(0);
          } else {
            buckets.readyUnused(0);
          }
          List.of(1, 2, 3).forEach(buckets::ready);
          buckets.await(soon());
          Values.check("half the gradient", buckets.gradient(0), i -> 4);
        });
  }

  @Test
  void aGradientIsReadyOnceInAStep() {
    withBuckets(
        1,
        (communicator, buckets) -> {
          buckets.ready(1);
          assertThatThrownBy(() -> buckets.ready(1))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("b (20 float32)");
          assertThatThrownBy(() -> buckets.readyUnused(1))
              .isInstanceOf(IllegalStateException.class);
        });
  }

  @Test
  void theAllReducesOfARankThatLeavesEnd() {
    CyclicBarrier bothStarted = new CyclicBarrier(2);
    onRanks(
        2,
        communicator -> {
          GradientBuckets buckets = open(communicator);
          if (communicator.rank() == 0) {
            buckets.ready(3);
            Event event = buckets.started().get(0);
            bothStarted.await();
            assertThatThrownBy(() -> event.await(soon()))
                .isInstanceOf(EventFailedException.class)
                .hasMessageContaining("rank 1");
            buckets.close();
          } else {
            bothStarted.await();
            buckets.close();
            communicator.abort("this rank leaves");
          }
        });
  }

  @Test
  void closedBucketsTakeNothing() {
    onRanks(
        1,
        communicator -> {
          GradientBuckets buckets = open(communicator);
          buckets.close();
          buckets.close();
          assertThatThrownBy(() -> buckets.ready(0)).isInstanceOf(IllegalStateException.class);
          assertThatThrownBy(() -> buckets.await(soon())).isInstanceOf(IllegalStateException.class);
        });
  }

  @Test
  void namesAreDistinct() {
    onRanks(
        1,
        communicator ->
            assertThatThrownBy(
                    () -> open(communicator, List.of(floats("w", 1), floats("w", 2)), 64))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("same name"));
  }

  /**
   * An Error, as when the JVM's limit for direct memory is reached, after one bucket was created.
   */
  @Test
  void memoryOfBucketsThatCouldNotBeOpenedIsFreed() {
    onRanks(
        1,
        communicator -> {
          ScarceMemory memory = new ScarceMemory();
          assertThatThrownBy(() -> GradientBuckets.open(communicator, MODEL, BUCKET_BYTES, memory))
              .isInstanceOf(OutOfMemoryError.class);
          assertThat(memory.allocated).isEqualTo(1);
          assertThat(memory.closed).isTrue();
        });
  }

  private static final class ScarceMemory implements BucketMemory {
    private final BucketMemory memory = BucketMemory.ofProcess();
    private int allocated;
    private boolean closed;

    @Override
    public BufferOwner allocate(long bytes) {
      if (allocated > 0) {
        throw new OutOfMemoryError("no direct memory, as the test asked");
      }
      allocated++;
      return memory.allocate(bytes);
    }

    @Override
    public void close() {
      closed = true;
      memory.close();
    }
  }
}
