package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.tensor.codec.CorruptTensorException;
import io.weft.tensor.codec.PieceDecoder;

/** The receiving end of an encoded transfer. Used by the lane's thread. */
final class IncomingTransfer extends CodedTransfer<Boolean> {
  private final PieceDecoder decoder;

  IncomingTransfer(PreparedTransfer transfer) {
    super(transfer);
    this.decoder = new PieceDecoder(transfer.coding().kind(), tensor());
  }

  /**
   * Checks the length that the peer has sent for a chunk.
   *
   * @return whether a chunk follows
   * @throws CorruptTensorException if the length is invalid; then no further data of the peer can
   *     be trusted
   */
  boolean expects(int chunk) {
    long bytes = bytes(chunk);
    if (bytes == NONE) {
      fail(
          new TransferException(
              "%s could not encode its chunk %d".formatted(transfer().peer(), chunk)));
      return false;
    }
    long room = transfer().coding().room(chunk).bytes();
    if (bytes < 1 || bytes > room) {
      throw new CorruptTensorException(
          "chunk %d of the %s is to have %d bytes, of at most %d"
              .formatted(chunk, transfer().event().what(), bytes, room));
    }
    return true;
  }

  /** Starts to decode a chunk that has arrived. The next one arrives in the other slot. */
  void arrived(int chunk) {
    var unused = finish();
    // After a failed chunk the peer still sends the rest, which is received and ignored.
    if (!failed()) {
      TypedBuffer body = body(chunk);
      start(TransferCounter.CHUNKS_DECODED, () -> decode(chunk, body));
    }
  }

  private boolean decode(int chunk, TypedBuffer body) {
    int header = chunk == 0 ? decoder.begin(body.address(), body.bytes()) : 0;
    decoder.next(body.address() + header, body.bytes() - header);
    return true;
  }
}
