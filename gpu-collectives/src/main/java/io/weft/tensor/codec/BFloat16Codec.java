package io.weft.tensor.codec;

import io.weft.collectives.DataType;
import io.weft.collectives.arithmetic.Conversion;
import io.weft.tensor.Tensor;

/**
 * Encodes float32 as bfloat16, rounded to nearest even.
 *
 * <p>For the decoded value y of a finite x: |x - y| ≤ |x| / 256 + 2^-134; the second term is for x
 * smaller than 2^-126. From (2 - 2^-8) · 2^127 on, halfway between the largest bfloat16 and 2^128,
 * y is an infinity of the same sign. Infinities and zeros of both signs are kept. A NaN stays a
 * NaN.
 */
final class BFloat16Codec implements TensorCodec {
  private static final int WIDTH = DataType.BFLOAT16.bytes();

  @Override
  public boolean encodes(DataType dtype) {
    return dtype == DataType.FLOAT32;
  }

  @Override
  public TensorEncoder encoder(Tensor tensor) {
    TensorEncoder.require(this, CodecKind.BFLOAT16, tensor);
    return new TensorEncoder(tensor, new TensorHeader(CodecKind.BFLOAT16, tensor.type(), 0)) {
      @Override
      int encode(long from, int elements, long to) {
        Conversion.narrow(DataType.BFLOAT16, from, to, elements, 1);
        return WIDTH * elements;
      }
    };
  }

  @Override
  public int pieceBound(DataType dtype, int elements) {
    return WIDTH * elements;
  }

  @Override
  public void checkBody(TensorHeader header, long body, long bytes) {
    long expected = WIDTH * header.type().elements();
    header.checkBody(bytes == expected, "it has " + bytes + " bytes, not " + expected);
  }

  @Override
  public void decode(TensorHeader header, long body, long bytes, long to) {
    Conversion.widen(DataType.BFLOAT16, body, to, header.type().elements());
  }
}
