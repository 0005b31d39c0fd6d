package io.weft.examples.etl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.examples.train.ModelShape;
import io.weft.examples.train.TrainingModel;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class LinearModelTest {
  private static Tensor floats(long rows, long columns, float... values) {
    Tensor made = Tensor.allocate(TensorType.of(DataType.FLOAT32, rows, columns));
    put(made.buffer(), values);
    return made;
  }

  private static void put(TypedBuffer to, float... values) {
    for (int i = 0; i < values.length; i++) {
      Memory.putFloat(to.address() + 4L * i, values[i]);
    }
  }

  private static List<Float> values(TypedBuffer of) {
    List<Float> values = new ArrayList<>();
    for (long i = 0; i < of.count(); i++) {
      values.add(Memory.getFloat(of.address() + 4 * i));
    }
    return values;
  }

  /** The second batch is smaller than the first. */
  @Test
  void logitsAndGradients() {
    List<Integer> ready = new ArrayList<>();
    try (TrainingModel model = new LinearModel().open(new ModelShape(2, List.of(), 2), 1);
        Tensor first = floats(2, 2, 1, 2, 3, 4);
        Tensor second = floats(1, 2, 5, 6);
        Tensor of = floats(2, 2, 1, 0, 0, 10);
        Tensor gradient = floats(2, 2, 100, 0, 0, 0)) {
      put(model.values().get(0), 1, 0, 2, -1);
      model.bindGradients(List.of(gradient.buffer()));
      assertThat(values(model.forward(first, true))).containsExactly(1f, 0f, 3f, 2f);
      model.backward(of.buffer(), ready::add);
      assertThat(values(gradient.buffer())).containsExactly(101f, 2f, 30f, 40f);
      assertThat(values(model.forward(second, false))).containsExactly(5f, 4f);
    }
    assertThat(ready).containsExactly(0);
  }
}
