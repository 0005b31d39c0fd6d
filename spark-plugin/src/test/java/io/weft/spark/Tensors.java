package io.weft.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.nio.ByteBuffer;
import java.util.Map;

/** Tensors with content derived from a seed, and the settings for RDDs of tensors. */
public final class Tensors {
  /** Kryo with tensors registered. */
  public static final Map<String, String> SETTINGS =
      Map.of(
          "spark.serializer",
          "org.apache.spark.serializer.KryoSerializer",
          "spark.kryo.registrator",
          WeftKryoRegistrator.class.getName());

  private Tensors() {}

  /** A tensor of float32 elements seed, seed + 1 and so on. */
  public static Tensor counting(int seed, long... shape) {
    Tensor tensor = Tensor.allocate(TensorType.of(DataType.FLOAT32, shape));
    for (long i = 0; i < tensor.type().elements(); i++) {
      Memory.putFloat(tensor.address() + 4 * i, seed + i);
    }
    return tensor;
  }

  /** A tensor whose type and size are also derived from a seed: empty, tiny, shared or large. */
  public static Tensor varied(int seed) {
    DataType dtype = DataType.values()[seed % DataType.values().length];
    if (seed % 11 == 0) {
      return Tensor.empty(dtype);
    }
    Tensor tensor =
        Tensor.allocate(TensorType.of(dtype, seed % 7, 1 + seed % 3, 1L + seed * 31 % 700));
    for (long i = 0; i < tensor.type().bytes(); i++) {
      Memory.putByte(tensor.address() + i, (byte) (seed + i));
    }
    return tensor;
  }

  /** Fails unless the tensor equals that of {@link #counting}. */
  public static void assertCounting(Tensor tensor, int seed, long... shape) {
    assertThat(tensor.type()).isEqualTo(TensorType.of(DataType.FLOAT32, shape));
    for (long i = 0; i < tensor.type().elements(); i++) {
      if (Memory.getFloat(tensor.address() + 4 * i) != seed + i) {
        assertThat(Memory.getFloat(tensor.address() + 4 * i)).as("[%s]", i).isEqualTo(seed + i);
      }
    }
  }

  /** Type and content as a short text. */
  public static String text(Tensor tensor) {
    ByteBuffer bytes = tensor.byteBuffer();
    return tensor.type() + " #" + bytes.hashCode() + (isShared(tensor) ? " shared" : "");
  }

  private static boolean isShared(Tensor tensor) {
    return tensor == Tensor.empty(tensor.type().dtype());
  }
}
