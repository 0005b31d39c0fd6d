package io.weft.examples.train.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.TrainingModel;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import io.weft.training.Adam;
import io.weft.training.AdamOptions;
import io.weft.training.GradientWrite;
import io.weft.training.SoftmaxCrossEntropy;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests PyTorch through DJL, from the class path and without network access. */
class DjlClassifierTest {
  private static final int ROWS = 64;

  /** Small, because the slope of a rectifier changes abruptly. The loss is exact to about 1e-6. */
  private static final float STEP = 1e-3f;

  private static final ModelShape SHAPE = new ModelShape(5, List.of(16, 8), 3);

  private final Tensor features = Tensor.allocate(TensorType.of(DataType.FLOAT32, ROWS, 5));
  private final Tensor labels = Tensor.allocate(TensorType.of(DataType.INT32, ROWS));
  private final Tensor logitGradient = Tensor.allocate(TensorType.of(DataType.FLOAT32, ROWS, 3));
  private final List<TypedBuffer> gradients = new ArrayList<>();
  private TrainingModel model;

  @BeforeEach
  void open() {
    model = new DjlModels().open(SHAPE, 7);
    model
        .parameters()
        .forEach(
            parameter ->
                gradients.add(
                    Tensor.allocate(TensorType.of(DataType.FLOAT32, parameter.count())).buffer()));
    model.bindGradients(gradients);
    SplittableRandom random = new SplittableRandom(1);
    for (int row = 0; row < ROWS; row++) {
      double sum = 0;
      for (int i = 0; i < 5; i++) {
        float value = (float) random.nextDouble(-1, 1);
        Memory.putFloat(features.address() + 4L * (row * 5 + i), value);
        sum += value;
      }
      Memory.putInt(labels.address() + 4L * row, sum < -0.4 ? 0 : sum < 0.4 ? 1 : 2);
    }
  }

  @AfterEach
  void close() {
    model.close();
  }

  private SoftmaxCrossEntropy.Pass forward(boolean training) {
    TypedBuffer logits = model.forward(features, training);
    return SoftmaxCrossEntropy.MEAN.forward(logits, 3, labels.buffer());
  }

  private List<Integer> backward(SoftmaxCrossEntropy.Pass pass) {
    List<Integer> ready = new ArrayList<>();
    pass.backward(1, logitGradient.buffer(), GradientWrite.REPLACE);
    model.backward(logitGradient.buffer(), ready::add);
    return ready;
  }

  private void clear() {
    gradients.forEach(place -> Memory.setMemory(place.address(), place.bytes(), (byte) 0));
  }

  @Test
  void parametersAreNamedAndSized() {
    assertThat(model.parameters())
        .extracting(Object::toString)
        .containsExactly(
            "layer0.weight (80 float32)",
            "layer0.bias (16 float32)",
            "layer1.weight (128 float32)",
            "layer1.bias (8 float32)",
            "layer2.weight (24 float32)",
            "layer2.bias (3 float32)");
  }

  @Test
  void gradientsBecomeReadyFromTheLastLayerToTheFirst() {
    clear();
    assertThat(backward(forward(true))).containsExactly(5, 4, 3, 2, 1, 0);
  }

  /** Compares PyTorch's gradients in Weft's memory with difference quotients of the loss. */
  @Test
  void gradientsInTheirPlacesAreThoseOfTheLoss() {
    clear();
    backward(forward(true));
    for (int parameter = 0; parameter < gradients.size(); parameter++) {
      TypedBuffer values = model.values().get(parameter);
      for (long i = 0; i < values.count(); i += 3) {
        long at = values.address() + 4 * i;
        float here = Memory.getFloat(at);
        Memory.putFloat(at, here + STEP);
        double above = forward(false).loss();
        Memory.putFloat(at, here - STEP);
        double below = forward(false).loss();
        Memory.putFloat(at, here);
        double gradient = Memory.getFloat(gradients.get(parameter).address() + 4 * i);
        assertThat(gradient)
            .as("%s, element %d", model.parameters().get(parameter), i)
            .isCloseTo((above - below) / (2 * STEP), within(2e-3));
      }
    }
  }

  @Test
  void gradientsOfSeveralBatchesAddUpInPlace() {
    clear();
    backward(forward(true));
    TypedBuffer place = gradients.get(0);
    float once = Memory.getFloat(place.address());
    backward(forward(true));
    assertThat(once).isNotZero();
    assertThat(Memory.getFloat(place.address())).isCloseTo(2 * once, within(1e-6f));
  }

  @Test
  void aModelLearns() {
    double first = forward(false).loss();
    try (Adam adam = new Adam(model.parameters(), AdamOptions.DEFAULT.withLearningRate(0.02))) {
      for (int step = 0; step < 200; step++) {
        clear();
        backward(forward(true));
        adam.step(model.values(), gradients);
      }
    }
    assertThat(forward(false).loss()).isLessThan(first / 4);
  }

  @Test
  void theSameSeedMakesTheSameModel() {
    try (TrainingModel same = new DjlModels().open(SHAPE, 7);
        TrainingModel other = new DjlModels().open(SHAPE, 8)) {
      float here = Memory.getFloat(model.values().get(0).address());
      assertThat(Memory.getFloat(same.values().get(0).address())).isEqualTo(here);
      assertThat(Memory.getFloat(other.values().get(0).address())).isNotEqualTo(here);
    }
  }
}
