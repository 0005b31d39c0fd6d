package io.weft.training;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.util.Arrays;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class AdamTest {
  /** More than two tiles, and not a whole number of tiles. */
  private static final int COUNT = 2 * FloatTile.SIZE + 777;

  private static final List<ParameterSpec> MODEL =
      List.of(
          new ParameterSpec("w", DataType.FLOAT32, COUNT),
          new ParameterSpec("b", DataType.FLOAT32, 5));
  private static final int STEPS = 7;

  /** The update of the paper, in float64 and element by element. */
  private static final class Reference {
    private final double[] p;
    private final double[] m;
    private final double[] v;
    private final AdamOptions options;
    private int step;

    Reference(TypedBuffer values, AdamOptions options) {
      this.p = Buffers.read(values);
      this.m = new double[p.length];
      this.v = new double[p.length];
      this.options = options;
    }

    void step(TypedBuffer gradients) {
      step++;
      double[] g = Buffers.read(gradients);
      for (int i = 0; i < p.length; i++) {
        m[i] = options.beta1() * m[i] + (1 - options.beta1()) * g[i];
        v[i] = options.beta2() * v[i] + (1 - options.beta2()) * g[i] * g[i];
        double mean = m[i] / (1 - Math.pow(options.beta1(), step));
        double square = v[i] / (1 - Math.pow(options.beta2(), step));
        p[i] -= options.learningRate() * options.weightDecay() * p[i];
        p[i] -= options.learningRate() * mean / (Math.sqrt(square) + options.epsilon());
      }
    }
  }

  private static void assertClose(double[] actual, double[] expected, double tolerance) {
    assertThat(actual).hasSameSizeAs(expected);
    for (int i = 0; i < actual.length; i++) {
      assertThat(actual[i])
          .as("element %d", i)
          .isCloseTo(expected[i], within(tolerance + tolerance * Math.abs(expected[i])));
    }
  }

  private static List<TypedBuffer> values(DataType type) {
    return List.of(Buffers.random(type, COUNT, 1, 0, 1), Buffers.random(type, 5, 2, 0, 1));
  }

  private static List<TypedBuffer> gradients(DataType type, int step) {
    return List.of(
        Buffers.random(type, COUNT, 100 + step, 0, 1), Buffers.random(type, 5, 200 + step, 0, 1));
  }

  private static byte[] state(Adam adam) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    adam.stateTo(Channels.newChannel(bytes));
    return bytes.toByteArray();
  }

  private static void restore(Adam adam, byte[] state) throws IOException {
    adam.stateFrom(Channels.newChannel(new ByteArrayInputStream(state)));
  }

  @Test
  void float32MomentsFollowThePaper() {
    AdamOptions options = new AdamOptions(0.01, 0.9, 0.999, 1e-8, 0.1, DataType.FLOAT32);
    List<TypedBuffer> values = values(DataType.FLOAT32);
    Reference reference = new Reference(values.get(0), options);
    try (Adam adam = new Adam(MODEL, options)) {
      for (int step = 0; step < 50; step++) {
        List<TypedBuffer> gradients = gradients(DataType.FLOAT32, step);
        adam.step(values, gradients);
        reference.step(gradients.get(0));
      }
    }
    assertClose(Buffers.read(values.get(0)), reference.p, 1e-5);
  }

  /**
   * The first is TransformerEngine's test of both moments in bfloat16, with its betas, tolerances,
   * learning rate of one and reload. With the usual betas, more steps and their rounding errors add
   * up.
   */
  @ParameterizedTest
  @CsvSource({"0.1, 0.25, 2e-3", "0.9, 0.999, 1e-2"})
  void bfloat16MomentsStayCloseToFloat32OnesAlsoAfterAReload(
      double beta1, double beta2, double tolerance) throws IOException {
    AdamOptions options = new AdamOptions(1, beta1, beta2, 1e-8, 0, DataType.BFLOAT16);
    List<TypedBuffer> values = values(DataType.FLOAT32);
    Reference reference = new Reference(values.get(0), options);
    try (Adam before = new Adam(MODEL, options);
        Adam after = new Adam(MODEL, options)) {
      for (int step = 0; step < STEPS; step++) {
        before.step(values, gradients(DataType.FLOAT32, step));
        reference.step(gradients(DataType.FLOAT32, step).get(0));
        assertClose(Buffers.read(values.get(0)), reference.p, tolerance);
      }
      restore(after, state(before));
      for (int step = STEPS; step < 2 * STEPS; step++) {
        after.step(values, gradients(DataType.FLOAT32, step));
        reference.step(gradients(DataType.FLOAT32, step).get(0));
        assertClose(Buffers.read(values.get(0)), reference.p, tolerance);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = DataType.class,
      names = {"FLOAT32", "BFLOAT16"})
  void aReloadedOptimizerGoesOnBitForBit(DataType moments) throws IOException {
    AdamOptions options = AdamOptions.DEFAULT.withMoments(moments).withWeightDecay(0.01);
    List<TypedBuffer> values = values(DataType.FLOAT32);
    List<TypedBuffer> others = values(DataType.FLOAT32);
    try (Adam straight = new Adam(MODEL, options);
        Adam first = new Adam(MODEL, options);
        Adam second = new Adam(MODEL, options)) {
      for (int step = 0; step < 6; step++) {
        straight.step(values, gradients(DataType.FLOAT32, step));
        Adam turn = step < 3 ? first : second;
        if (step == 3) {
          restore(second, state(first));
        }
        turn.step(others, gradients(DataType.FLOAT32, step));
      }
      assertThat(second.steps()).isEqualTo(6);
      assertThat(state(second)).isEqualTo(state(straight));
    }
    assertThat(Buffers.read(others.get(0))).isEqualTo(Buffers.read(values.get(0)));
  }

  @Test
  void bfloat16ParametersAreRoundedOncePerStep() {
    AdamOptions options = new AdamOptions(0.05, 0.9, 0.999, 1e-8, 0, DataType.FLOAT32);
    List<ParameterSpec> model = List.of(new ParameterSpec("w", DataType.BFLOAT16, 3));
    TypedBuffer values = Buffers.of(DataType.BFLOAT16, 1, -2, 0.5);
    TypedBuffer gradients = Buffers.of(DataType.BFLOAT16, 1, -1, 0.25);
    try (Adam adam = new Adam(model, options)) {
      adam.step(List.of(values), List.of(gradients));
    }
    // The first step of Adam is the learning rate against the sign of the gradient.
    assertClose(Buffers.read(values), new double[] {0.95, -1.95, 0.45}, 0x1p-8);
  }

  @Test
  void momentsInBfloat16TakeHalfTheBytes() throws IOException {
    try (Adam halves = new Adam(MODEL, AdamOptions.DEFAULT);
        Adam floats = new Adam(MODEL, AdamOptions.DEFAULT.withMoments(DataType.FLOAT32))) {
      int saved = state(floats).length - state(halves).length;
      // The names of the two types also differ in length.
      assertThat(saved).isEqualTo(2 * 2 * (COUNT + 5) - 1);
    }
  }

  @Test
  void aDamagedOrForeignStateChangesNothing() throws IOException {
    try (Adam saved = new Adam(MODEL, AdamOptions.DEFAULT);
        Adam adam = new Adam(MODEL, AdamOptions.DEFAULT)) {
      saved.step(values(DataType.FLOAT32), gradients(DataType.FLOAT32, 0));
      byte[] good = state(saved);
      byte[] before = state(adam);
      byte[] damaged = good.clone();
      damaged[good.length / 2] ^= 1;
      assertRefused(adam, damaged, "checksum");
      byte[] cut = Arrays.copyOf(good, good.length - 3);
      assertRefused(adam, cut, "ends too early");
      byte[] newer = good.clone();
      newer[8] = 9;
      assertRefused(adam, newer, "version 9");
      assertRefused(adam, new byte[64], "not a state");
      assertThat(state(adam)).isEqualTo(before);
    }
  }

  @Test
  void aStateOfOtherParametersIsRefusedByName() throws IOException {
    List<ParameterSpec> renamed =
        List.of(MODEL.get(0), new ParameterSpec("bias", DataType.FLOAT32, 5));
    try (Adam saved = new Adam(MODEL, AdamOptions.DEFAULT);
        Adam other = new Adam(renamed, AdamOptions.DEFAULT);
        Adam wide = new Adam(MODEL, AdamOptions.DEFAULT.withMoments(DataType.FLOAT32))) {
      assertRefused(other, state(saved), "bias");
      assertRefused(wide, state(saved), "bfloat16");
    }
  }

  private static void assertRefused(Adam adam, byte[] state, String why) {
    assertThatThrownBy(() -> restore(adam, state))
        .isInstanceOf(StateException.class)
        .hasMessageContaining(why);
  }

  @Test
  void buffersThatDoNotFitChangeNothing() {
    List<TypedBuffer> values = values(DataType.FLOAT32);
    double[] before = Buffers.read(values.get(0));
    List<TypedBuffer> wrong =
        List.of(gradients(DataType.FLOAT32, 0).get(0), Buffers.zeros(DataType.FLOAT32, 4));
    try (Adam adam = new Adam(MODEL, AdamOptions.DEFAULT)) {
      assertThatThrownBy(() -> adam.step(values, wrong))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("b (5 float32)");
      assertThat(adam.steps()).isZero();
    }
    assertThat(Buffers.read(values.get(0))).isEqualTo(before);
  }

  @Test
  void nothingAfterTheLastElementChanges() {
    List<ParameterSpec> model = List.of(new ParameterSpec("w", DataType.FLOAT32, 3));
    TypedBuffer guarded = Buffers.of(DataType.FLOAT32, 1, 1, 1, 42);
    TypedBuffer gradients = Buffers.of(DataType.FLOAT32, 1, 1, 1);
    try (Adam adam = new Adam(model, AdamOptions.DEFAULT)) {
      adam.step(List.of(guarded.slice(0, 3)), List.of(gradients));
    }
    assertThat(Memory.getFloat(guarded.address() + 12)).isEqualTo(42f);
  }

  /** A value in range as a double may be 0, 1 or infinite as a float. */
  @Test
  void constantsOutOfRangeAsFloatsAreRefused() {
    DataType kept = DataType.FLOAT32;
    assertOutOfRange("epsilon", () -> new AdamOptions(1e-3, 0.9, 0.999, 1e-46, 0, kept));
    assertOutOfRange("epsilon", () -> new AdamOptions(1e-3, 0.9, 0.999, 0, 0, kept));
    assertOutOfRange("epsilon", () -> new AdamOptions(1e-3, 0.9, 0.999, Double.NaN, 0, kept));
    assertOutOfRange("beta1", () -> new AdamOptions(1e-3, 1 - 1e-9, 0.999, 1e-8, 0, kept));
    assertOutOfRange("beta2", () -> new AdamOptions(1e-3, 0.9, 1 - 1e-9, 1e-8, 0, kept));
    assertOutOfRange("learning rate", () -> AdamOptions.DEFAULT.withLearningRate(1e-46));
    assertOutOfRange("learning rate", () -> AdamOptions.DEFAULT.withLearningRate(1e39));
    assertOutOfRange("weight decay", () -> AdamOptions.DEFAULT.withWeightDecay(-1));
    assertThat(new AdamOptions(1e-3, 0.9, 0.999, 1e-45, 0, kept).epsilon()).isEqualTo(1e-45);
  }

  private static void assertOutOfRange(String constant, ThrowingCallable made) {
    assertThatThrownBy(made)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("a " + constant + " of ")
        .hasMessageEndingWith("is out of range");
  }
}
