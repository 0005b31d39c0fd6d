package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.tensor.codec.CorruptTensorException;
import io.weft.tensor.codec.PieceDecoder;

/** The end that decodes. For the lane's thread. */
final class IncomingTransfer extends CodedTransfer<Boolean> {
  private final PieceDecoder decoder;

  IncomingTransfer(PreparedTransfer transfer) {
    super(transfer);
    this.decoder = new PieceDecoder(transfer.coding().kind(), tensor());
  }

  /**
   * The peer has told a chunk's bytes.
   *
   * @return whether a chunk follows
   * @throws CorruptTensorException when there is no room for so many: nothing that comes can be
   *     believed any more
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

  /** A chunk has arrived; lets it be decoded while the next one arrives in the other slot. */
  void arrived(int chunk) {
    var unused = finish();
    // What follows a chunk that could not be decoded is received, as the peer sends it, and left.
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
