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
 * The form in which the elements of a transfer travel: plain, or encoded in chunks through staging
 * memory. The first chunk has the header of the encoded tensor and its first piece; each other
 * chunk is one piece. The staging memory has two slots, so that one chunk moves while another is
 * encoded or decoded. Each slot starts with an int64, the length of its chunk.
 *
 * <p>Immutable. The staging memory is freed with the end of the transfer.
 *
 * @param staging the slots; null for plain elements
 * @param coders encode and decode; null for plain elements
 */
record Coding(CodecKind kind, TransferBuffer staging, Coders coders) {
  /** Elements travel without encoding. */
  static final Coding PLAIN = new Coding(CodecKind.NONE, null, null);

  private static final int SLOTS = 2;
  private static final int LENGTH_BYTES = Long.BYTES;
  private static final int ALIGNMENT = 64;

  boolean isPlain() {
    return staging == null;
  }

  /** The number of chunks of an array. */
  static int chunks(long elements) {
    return Math.toIntExact(
        (elements + TensorEncoder.PIECE_ELEMENTS - 1) / TensorEncoder.PIECE_ELEMENTS);
  }

  /** The bytes of both slots of an array. */
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

  /** The length field of a chunk's slot. */
  TypedBuffer length(int chunk) {
    return TypedBuffer.of(staging, slot(chunk), DataType.INT64, 1);
  }

  /** The memory of a chunk in its slot. */
  TypedBuffer room(int chunk) {
    long most = staging.bytes() / SLOTS - LENGTH_BYTES;
    return TypedBuffer.of(staging, slot(chunk) + LENGTH_BYTES, DataType.INT8, most);
  }

  /** Frees the staging memory at the end of the event. */
  void usedUntil(Event end) {
    if (staging != null) {
      staging.usedUntil(end);
      staging.close();
    }
  }
}
