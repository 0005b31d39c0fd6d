package io.weft.tensor.codec;

import io.weft.collectives.buffer.DataType;
import io.weft.tensor.Tensor;

/** One way to write the elements of a tensor. Stateless; found by its {@link CodecKind}. */
public interface TensorCodec {
  /** Whether elements of this type can be encoded. */
  boolean encodes(DataType dtype);

  /**
   * Begins to encode a tensor. A codec that scales looks at all elements here.
   *
   * @throws IllegalArgumentException when elements of its type cannot be encoded
   * @throws IllegalStateException when it has been closed
   */
  TensorEncoder encoder(Tensor tensor);

  /**
   * Most bytes of a piece of so many elements; exactly those for every codec but zstd.
   *
   * @param elements 0 to {@value TensorEncoder#PIECE_ELEMENTS}; no element takes no byte
   */
  int pieceBound(DataType dtype, int elements);

  /**
   * Checks that a body has the length that its header asks for, so that nothing is allocated for
   * what is not there.
   *
   * @throws CorruptTensorException when it has not
   */
  void checkBody(TensorHeader header, long body, long bytes);

  /**
   * Decodes a body that passed {@link #checkBody}.
   *
   * @param to memory of the bytes of the header's type
   * @throws CorruptTensorException when it cannot be decoded
   */
  void decode(TensorHeader header, long body, long bytes, long to);
}
