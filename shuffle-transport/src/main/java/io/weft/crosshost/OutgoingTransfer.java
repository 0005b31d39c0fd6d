package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.memory.Memory;
import io.weft.tensor.codec.TensorEncoder;

/** The sending end of an encoded transfer. Used by the lane's thread. */
final class OutgoingTransfer extends CodedTransfer<Integer> {
  /** Used by one coder at a time; a coder starts after the previous one has ended. */
  private TensorEncoder encoder;

  OutgoingTransfer(PreparedTransfer transfer) {
    super(transfer);
  }

  /** Starts to encode the first chunk. The caller must wait for its end. */
  void begin() {
    start(TransferCounter.CHUNKS_ENCODED, () -> encode(0));
  }

  /**
   * Waits for a chunk and starts to encode the next one. The slot of the next chunk is free,
   * because the previous chunk has moved.
   */
  void ready(int chunk) {
    long bytes = finish().map(Integer::longValue).orElse(NONE);
    Memory.putLong(length(chunk).address(), bytes);
    if (bytes != NONE && has(chunk + 1)) {
      start(TransferCounter.CHUNKS_ENCODED, () -> encode(chunk + 1));
    }
  }

  private int encode(int chunk) {
    if (encoder == null) {
      // A codec that scales reads all elements here, before the first chunk.
      encoder = transfer().coding().kind().codec().encoder(tensor());
    }
    TypedBuffer room = transfer().coding().room(chunk);
    int bytes = chunk == 0 ? encoder.next(room.address(), room.bytes()) : 0;
    return bytes + encoder.next(room.address() + bytes, room.bytes() - bytes);
  }
}
