package io.weft.training;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.device.Deadline;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class GradientAccumulatorTest {
  private static final int COUNT = FloatTile.SIZE + 5;
  private static final List<ParameterSpec> MODEL =
      List.of(
          new ParameterSpec("a", DataType.FLOAT32, 3),
          new ParameterSpec("b", DataType.FLOAT32, COUNT));

  private final List<TypedBuffer> sums =
      List.of(Buffers.zeros(DataType.FLOAT32, 3), Buffers.zeros(DataType.FLOAT32, COUNT));
  private final List<Integer> complete = new ArrayList<>();

  private GradientAccumulator accumulator(int microBatches) {
    return new GradientAccumulator(MODEL, sums, microBatches, complete::add);
  }

  private static Weights original(int parameter) {
    return Weights.original(
        parameter, Buffers.zeros(DataType.FLOAT32, (int) MODEL.get(parameter).count()));
  }

  /**
   * The trap of grouped matrix products: gradients of quantised weights belong to the originals.
   */
  @Test
  void aGradientOfACopiedWeightGoesToTheOriginalAndMarksIt() {
    GradientAccumulator accumulator = accumulator(1);
    accumulator.begin();
    Weights rounded = original(1).copiedTo(Buffers.zeros(DataType.BFLOAT16, COUNT));
    Weights packed = rounded.copiedTo(Buffers.zeros(DataType.INT8, 1));
    assertThat(packed.isCopy()).isTrue();
    assertThat(accumulator.isAdded(1)).isFalse();
    accumulator.add(packed, Buffers.random(DataType.FLOAT32, COUNT, 1, 1, 2));
    assertThat(accumulator.isAdded(1)).isTrue();
    assertThat(accumulator.isAdded(0)).isFalse();
    assertThat(complete).containsExactly(1);
    assertThat(Buffers.read(sums.get(1)))
        .isEqualTo(Buffers.read(Buffers.random(DataType.FLOAT32, COUNT, 1, 1, 2)));
  }

  /**
   * "param.grad being None is not safe": a framework that asks for a gradient gets an empty one.
   */
  @Test
  void theFrameworkGetsAStandInAndNeverNull() {
    GradientAccumulator accumulator = accumulator(2);
    accumulator.begin();
    TypedBuffer first = accumulator.add(original(0), Buffers.of(DataType.FLOAT32, 1, 2, 3));
    TypedBuffer second = accumulator.add(original(0), Buffers.of(DataType.FLOAT32, 1, 2, 3));
    assertThat(first).isNotNull().isSameAs(second);
    assertThat(first).isSameAs(GradientAccumulator.standIn(DataType.FLOAT32));
    assertThat(first.count()).isZero();
    assertThat(first.type()).isEqualTo(DataType.FLOAT32);
  }

  @Test
  void aParameterIsCompleteAfterItsLastMicroBatch() {
    GradientAccumulator accumulator = accumulator(3);
    for (int step = 0; step < 2; step++) {
      complete.clear();
      accumulator.begin();
      accumulator.add(original(0), Buffers.of(DataType.FLOAT32, 1, 2, 3));
      accumulator.add(original(0), Buffers.of(DataType.BFLOAT16, 1, 2, 3));
      assertThat(complete).isEmpty();
      accumulator.add(original(0), Buffers.of(DataType.FLOAT32, 1, 2, 3));
      assertThat(complete).containsExactly(0);
      assertThat(Buffers.read(sums.get(0))).containsExactly(3, 6, 9);
    }
    assertThatThrownBy(() -> accumulator.add(original(0), Buffers.of(DataType.FLOAT32, 1, 1, 1)))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("a (3 float32)");
    assertThat(Buffers.read(sums.get(0))).containsExactly(3, 6, 9);
  }

  @Test
  void sumsOfBfloat16GradientsAreKeptInFloat32() {
    GradientAccumulator accumulator = accumulator(257);
    accumulator.begin();
    accumulator.add(original(0), Buffers.of(DataType.BFLOAT16, 256, 256, 256));
    for (int i = 0; i < 256; i++) {
      accumulator.add(original(0), Buffers.of(DataType.BFLOAT16, 1, 0, 0.5));
    }
    // In bfloat16 256 + 1 is 256 again.
    assertThat(Buffers.read(sums.get(0))).containsExactly(512, 256, 384);
  }

  @Test
  void theSumItselfIsNotAddedToItself() {
    GradientAccumulator accumulator = accumulator(1);
    accumulator.begin();
    assertThatThrownBy(() -> accumulator.add(original(0), sums.get(0)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("added()");
    accumulator.added(original(0));
    assertThat(complete).containsExactly(0);
  }

  @Test
  void microBatchesOnSeveralRanksAverageInTheBuckets() {
    try (RankGang gang = RankGang.open(LocalCommunicator::create, 2, Duration.ofSeconds(60))) {
      gang.run(
          communicator -> {
            try (GradientBuckets buckets =
                GradientBuckets.open(communicator, MODEL, 64, BucketMemory.ofProcess())) {
              GradientAccumulator accumulator = GradientAccumulator.over(buckets, 2);
              for (int step = 0; step < 3; step++) {
                accumulator.begin();
                for (int micro = 0; micro < 2; micro++) {
                  for (int parameter = 1; parameter >= 0; parameter--) {
                    double value = 10.0 * communicator.rank() + micro + parameter;
                    TypedBuffer gradient =
                        Buffers.zeros(DataType.FLOAT32, (int) MODEL.get(parameter).count());
                    Values.fill(gradient, i -> value);
                    accumulator.add(original(parameter), gradient);
                  }
                }
                buckets.await(Deadline.after(Duration.ofSeconds(60)));
                Values.check("a", buckets.gradient(0), i -> 11);
                Values.check("b", buckets.gradient(1), i -> 13);
              }
            }
          });
    }
  }
}
