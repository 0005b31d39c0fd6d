package io.weft.tensor.codec;

import io.weft.collectives.TypedBuffer;
import io.weft.tensor.Tensor;
import java.util.NoSuchElementException;

/**
 * Encodes one tensor: first its header, then pieces of its body, each into memory of its caller. A
 * piece is complete when {@link #next} returns and is never changed again, so it may be sent while
 * the next one is computed. The tensor is only read. Used by one thread.
 */
public abstract class TensorEncoder {
  /**
   * The elements of a piece; the last piece may have fewer. One byte of each element fills a block
   * of Zstandard, 128 KiB, so that a block's statistics contain bytes of one significance only.
   */
  public static final int PIECE_ELEMENTS = 1 << 17;

  private final Tensor tensor;
  private final TensorHeader header;
  private boolean begun;
  private long done;

  TensorEncoder(Tensor tensor, TensorHeader header) {
    this.tensor = tensor;
    this.header = header;
  }

  /** The header before the body. */
  public TensorHeader header() {
    return header;
  }

  /** The most bytes of all pieces together; exact for every codec but zstd. */
  public long bound() {
    long elements = header.type().elements();
    return header.bytes()
        + elements / PIECE_ELEMENTS * pieceBound(PIECE_ELEMENTS)
        + pieceBound((int) (elements % PIECE_ELEMENTS));
  }

  /** Whether there is another piece. */
  public boolean hasNext() {
    return !begun || done < header.type().elements();
  }

  /** The most bytes of the next piece. */
  public int nextBound() {
    return begun ? pieceBound(elementsOfNext()) : header.bytes();
  }

  /**
   * Writes the next piece.
   *
   * @param room the available bytes at the address
   * @return the written bytes
   * @throws IllegalArgumentException when there is less room than {@link #nextBound}
   * @throws IllegalStateException when the tensor has been closed
   * @throws NoSuchElementException when all pieces have been written
   */
  public int next(long address, long room) {
    if (!hasNext()) {
      throw new NoSuchElementException("all of " + header.type() + " has been encoded");
    }
    if (room < nextBound()) {
      throw new IllegalArgumentException(
          "room for " + room + " bytes where " + nextBound() + " may be needed");
    }
    if (!begun) {
      header.write(address);
      begun = true;
      return header.bytes();
    }
    int elements = elementsOfNext();
    TypedBuffer piece = tensor.buffer().slice(done, elements);
    int bytes = encode(piece.address(), elements, address);
    done += elements;
    return bytes;
  }

  private int pieceBound(int elements) {
    return header.kind().codec().pieceBound(header.type().dtype(), elements);
  }

  private int elementsOfNext() {
    return (int) Math.min(PIECE_ELEMENTS, header.type().elements() - done);
  }

  /** Writes a piece of at least one element; returns its length in bytes. */
  abstract int encode(long from, int elements, long to);

  /** Throws unless a codec encodes elements of this type. */
  static void require(TensorCodec codec, CodecKind kind, Tensor tensor) {
    if (!codec.encodes(tensor.type().dtype())) {
      throw new IllegalArgumentException(kind + " does not encode " + tensor.type().dtype());
    }
  }
}
