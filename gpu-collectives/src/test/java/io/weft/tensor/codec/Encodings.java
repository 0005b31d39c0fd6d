package io.weft.tensor.codec;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Converts arrays to tensors and back, and encodes whole tensors. */
final class Encodings {
  private Encodings() {}

  static Tensor tensor(float... values) {
    Tensor tensor = Tensor.allocate(TensorType.of(DataType.FLOAT32, values.length));
    tensor.byteBuffer().asFloatBuffer().put(values);
    return tensor;
  }

  static float[] floats(Tensor tensor) {
    float[] values = new float[(int) tensor.type().elements()];
    tensor.byteBuffer().asFloatBuffer().get(values);
    return values;
  }

  static byte[] bytes(Tensor tensor) {
    byte[] bytes = new byte[(int) tensor.type().bytes()];
    tensor.byteBuffer().get(bytes);
    return bytes;
  }

  /** Header and body, piece after piece. */
  static ByteBuffer encode(CodecKind kind, Tensor tensor) {
    TensorEncoder encoder = kind.codec().encoder(tensor);
    ByteBuffer target = direct(encoder.bound());
    int at = 0;
    while (encoder.hasNext()) {
      at += encoder.next(Memory.addressOf(target) + at, target.capacity() - at);
    }
    return target.limit(at);
  }

  /** Encodes and decodes values. */
  static float[] roundTrip(CodecKind kind, float... values) {
    return floats(TensorDecoder.decode(encode(kind, tensor(values))));
  }

  static ByteBuffer direct(long bytes) {
    return ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
  }
}
