package io.weft.tensor.codec;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;

/** An encoding for the elements of a tensor. Stateless; found by its {@link CodecKind}. */
public interface TensorCodec {
  /** Whether elements of this type can be encoded. */
  boolean encodes(DataType dtype);

  /**
   * Starts to encode a tensor. A codec that scales reads all elements here.
   *
   * @throws IllegalArgumentException when elements of its type cannot be encoded
   * @throws IllegalStateException when it has been closed
   */
  TensorEncoder encoder(Tensor tensor);

  /**
   * The most bytes of a piece of that many elements; exact for every codec but zstd.
   *
   * @param elements 0 to {@value TensorEncoder#PIECE_ELEMENTS}; 0 elements have 0 bytes
   */
  int pieceBound(DataType dtype, int elements);

  /**
   * Checks the length of a body against its header, so that no memory is allocated for missing
   * bytes.
   *
   * @throws CorruptTensorException when the length is wrong
   */
  void checkBody(TensorHeader header, long body, long bytes);

  /**
   * Decodes a body that passed {@link #checkBody}.
   *
   * @param to memory for all bytes of the header's type
   * @throws CorruptTensorException when it cannot be decoded
   */
  void decode(TensorHeader header, long body, long bytes, long to);

  /** Keeps the elements unchanged; for any type, bit by bit. */
  static final class PlainCodec implements TensorCodec {
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
}
