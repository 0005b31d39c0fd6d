package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.LocalSpark;
import io.weft.spark.TaskTotals;
import io.weft.spark.Tensors;
import io.weft.tensor.Tensor;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Encoded tensors in shuffles, with every byte counted. */
class TensorCodecRouteTest {
  private static final int COUNT = 200;
  private static final int ELEMENTS = 250;

  /**
   * Maximum bytes of a record without elements: size, key, class, form, length, header, padding.
   */
  private static final int MAX_AROUND = 64;

  @ParameterizedTest
  @CsvSource({"none, 4", "bfloat16, 2", "float8_e4m3, 1"})
  void bytesOfAShuffle(String codec, int width) throws Exception {
    Map<String, String> settings = new HashMap<>(Tensors.SETTINGS);
    settings.put("spark.weft.tensors.codec", codec);
    try (LocalSpark spark = LocalSpark.start(settings)) {
      TaskTotals totals = new TaskTotals();
      spark.session().sparkContext().addSparkListener(totals);
      List<Tensor> tensors =
          new JavaSparkContext(spark.session().sparkContext())
              .parallelize(IntStream.range(0, COUNT).boxed().toList(), 2)
              .map(i -> Tensors.counting(i, ELEMENTS))
              .repartition(3)
              .collect();
      spark.drainListeners();
      long least = (long) COUNT * ELEMENTS * width;
      assertThat(totals.bytesWritten()).isBetween(least, least + COUNT * MAX_AROUND);
      assertThat(tensors).hasSize(COUNT);
      for (Tensor tensor : tensors) {
        assertNear(tensor, width);
      }
    }
  }

  /** The last element is the largest. The first one must match within the codec's error. */
  private static void assertNear(Tensor tensor, int width) {
    double error = width == 4 ? 0 : width == 2 ? 1.0 / 256 : 1.0 / 16;
    float last = tensor.byteBuffer().asFloatBuffer().get(ELEMENTS - 1);
    double seed = tensor.byteBuffer().asFloatBuffer().get(0);
    assertThat(last - seed - (ELEMENTS - 1)).isBetween(-2 * error * last, 2 * error * last);
  }
}
