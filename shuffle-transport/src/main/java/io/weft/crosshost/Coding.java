package io.weft.crosshost;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.crosshost.buffer.TransferBuffer;
import io.weft.device.Event;
import io.weft.tensor.TensorType;
import io.weft.tensor.codec.CodecKind;
import io.weft.tensor.codec.TensorEncoder;
import io.weft.tensor.codec.TensorHeader;

/**
 * How the elements of a transfer travel: as they are, or encoded, in chunks that pass through
 * memory of their own. The first chunk is the header of the encoded tensor and its first piece,
 * every other one a piece. There are two slots, so that one chunk is on its way while another is
 * encoded or decoded; each has an int64 in front, the bytes of its chunk.
 *
 * <p>Immutable. The memory goes back with the end of its transfer.
 *
 * @param staging the slots; null where elements travel as they are
 * @param coders who encodes or decodes; null as well
 */
record Coding(CodecKind kind, TransferBuffer staging, Coders coders) {
  /** Elements travel as they are. */
  static final Coding PLAIN = new Coding(CodecKind.NONE, null, null);

  private static final int SLOTS = 2;
  private static final int LENGTH_BYTES = Long.BYTES;
  private static final int ALIGNMENT = 64;

  boolean isPlain() {
    return staging == null;
  }

  /** Chunks of so many elements. */
  static int chunks(long elements) {
    return Math.toIntExact(
        (elements + TensorEncoder.PIECE_ELEMENTS - 1) / TensorEncoder.PIECE_ELEMENTS);
  }

  /** Bytes that the slots of an array take. */
  static long stagingBytes(CodecKind kind, DataType type, long elements) {
    return SLOTS * slotBytes(kind, type, elements);
  }

  private static long slotBytes(CodecKind kind, DataType type, long elements) {
    int piece = (int) Math.min(TensorEncoder.PIECE_ELEMENTS, elements);
    long bytes =
        (long) LENGTH_BYTES
            + new TensorHeader(kind, TensorType.of(type, elements), 0).bytes()
            + kind.codec().pieceBound(type, piece);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }

  private long slot(int chunk) {
    return staging.bytes() / SLOTS * (chunk % SLOTS);
  }

  /** Where the bytes of a chunk are told. */
  TypedBuffer length(int chunk) {
    return TypedBuffer.of(staging, slot(chunk), DataType.INT64, 1);
  }

  /** Where a chunk lies. */
  TypedBuffer room(int chunk) {
    long most = staging.bytes() / SLOTS - LENGTH_BYTES;
    return TypedBuffer.of(staging, slot(chunk) + LENGTH_BYTES, DataType.INT8, most);
  }

  /** Gives the memory back at the event's end. */
  void usedUntil(Event end) {
    if (staging != null) {
      staging.usedUntil(end);
      staging.close();
    }
  }
}
