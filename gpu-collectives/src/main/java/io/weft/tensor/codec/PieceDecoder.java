package io.weft.tensor.codec;

import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;

/**
 * Reads one tensor of a {@link TensorEncoder} into existing memory: first its header, then each
 * piece as soon as it is available. A tensor that does not match that memory is an error before any
 * of it is written. Used by one thread.
 */
public final class PieceDecoder {
  private final CodecKind kind;
  private final Tensor target;
  private TensorHeader header;
  private long done;

  /**
   * Reads into a tensor, which stays the caller's.
   *
   * @param kind the required codec of the pieces
   */
  public PieceDecoder(CodecKind kind, Tensor target) {
    this.kind = kind;
    this.target = target;
  }

  /** Whether the header or a piece is still missing. */
  public boolean hasNext() {
    return header == null || done < target.type().elements();
  }

  /**
   * Reads the header.
   *
   * @param bytes the available bytes at the address; they start with the header
   * @return the length of the header in bytes
   * @throws CorruptTensorException when it is not a header, or has another codec or type
   */
  public int begin(long address, long bytes) {
    TensorHeader read = TensorHeader.read(address, bytes);
    if (read.kind() != kind || !read.type().equals(target.type())) {
      throw new CorruptTensorException(
          "Not the expected tensor: %s encoded as %s, expected %s as %s"
              .formatted(read.type(), read.kind(), target.type(), kind));
    }
    header = read;
    return read.bytes();
  }

  /**
   * Reads the next piece.
   *
   * @param bytes the length of the piece
   * @throws CorruptTensorException when the length is wrong, or the piece cannot be decoded
   * @throws IllegalStateException before the header, after the last piece, or when the tensor has
   *     been closed
   */
  public void next(long address, long bytes) {
    if (header == null || !hasNext()) {
      throw new IllegalStateException("no piece of " + target.type() + " is expected");
    }
    long left = target.type().elements() - done;
    int elements = (int) Math.min(TensorEncoder.PIECE_ELEMENTS, left);
    TensorHeader piece =
        new TensorHeader(
            kind, TensorType.of(header.type().dtype(), elements), header.scaleExponent());
    kind.codec().checkBody(piece, address, bytes);
    kind.codec().decode(piece, address, bytes, target.buffer().slice(done, elements).address());
    done += elements;
  }
}
