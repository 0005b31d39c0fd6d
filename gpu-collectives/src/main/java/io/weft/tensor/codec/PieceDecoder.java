package io.weft.tensor.codec;

import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;

/**
 * Reads one tensor as a {@link TensorEncoder} writes it: first its header, then piece after piece,
 * each as soon as it is there, into memory that exists already. What does not fit that memory is an
 * error before any of it is written. For one thread.
 */
public final class PieceDecoder {
  private final CodecKind kind;
  private final Tensor target;
  private TensorHeader header;
  private long done;

  /**
   * Reads into a tensor, which stays the caller's.
   *
   * @param kind what the pieces must be encoded by
   */
  public PieceDecoder(CodecKind kind, Tensor target) {
    this.kind = kind;
    this.target = target;
  }

  /** Whether the header or a piece is still to come. */
  public boolean hasNext() {
    return header == null || done < target.type().elements();
  }

  /**
   * Reads the header.
   *
   * @param bytes from the address on, of which the header may be the beginning
   * @return the bytes of the header
   * @throws CorruptTensorException when it is none, or that of another codec or type
   */
  public int begin(long address, long bytes) {
    TensorHeader read = TensorHeader.read(address, bytes);
    if (read.kind() != kind || !read.type().equals(target.type())) {
      throw new CorruptTensorException(
          "Not the expected tensor: %s encoded as %s where %s as %s was to come"
              .formatted(read.type(), read.kind(), target.type(), kind));
    }
    header = read;
    return read.bytes();
  }

  /**
   * Reads the next piece.
   *
   * @param bytes exactly those of the piece
   * @throws CorruptTensorException when it has another length, or cannot be decoded
   * @throws IllegalStateException before the header, behind the last piece, or when the tensor has
   *     been closed
   */
  public void next(long address, long bytes) {
    if (header == null || !hasNext()) {
      throw new IllegalStateException("no piece of " + target.type() + " is to come");
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
