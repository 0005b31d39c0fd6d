package io.weft.tensor.codec;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;

/** Keeps the elements unchanged; for any type, bit by bit. */
final class PlainCodec implements TensorCodec {
  @Override
  public boolean encodes(DataType dtype) {
    return true;
  }

  @Override
  public TensorEncoder encoder(Tensor tensor) {
    int width = tensor.type().dtype().bytes();
    return new TensorEncoder(tensor, new TensorHeader(CodecKind.NONE, tensor.type(), 0)) {
      @Override
      int encode(long from, int elements, long to) {
        Memory.copy(from, to, (long) width * elements);
        return width * elements;
      }
    };
  }

  @Override
  public int pieceBound(DataType dtype, int elements) {
    return dtype.bytes() * elements;
  }

  @Override
  public void checkBody(TensorHeader header, long body, long bytes) {
    long expected = header.type().bytes();
    header.checkBody(bytes == expected, "it has " + bytes + " bytes, not " + expected);
  }

  @Override
  public void decode(TensorHeader header, long body, long bytes, long to) {
    Memory.copy(body, to, bytes);
  }
}
