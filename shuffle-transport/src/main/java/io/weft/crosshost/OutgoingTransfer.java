package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.memory.Memory;
import io.weft.tensor.codec.TensorEncoder;

/** The end that encodes. For the lane's thread. */
final class OutgoingTransfer extends CodedTransfer<Integer> {
  /** Used by one coder at a time, each after the one before has ended. */
  private TensorEncoder encoder;

  OutgoingTransfer(PreparedTransfer transfer) {
    super(transfer);
  }

  /** Lets the first chunk be encoded; whoever calls this waits for its end. */
  void begin() {
    start(TransferCounter.CHUNKS_ENCODED, () -> encode(0));
  }

  /**
   * Waits for a chunk, and lets the next one be encoded beside. The slot of that one is free: the
   * chunk before this one has moved.
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
      // A codec that scales looks at all elements here, before the first chunk.
      encoder = transfer().coding().kind().codec().encoder(tensor());
    }
    TypedBuffer room = transfer().coding().room(chunk);
    int bytes = chunk == 0 ? encoder.next(room.address(), room.bytes()) : 0;
    return bytes + encoder.next(room.address() + bytes, room.bytes() - bytes);
  }
}
