package io.weft.crosshost.wire;

import io.weft.collectives.buffer.DataType;
import io.weft.tensor.codec.CodecKind;

/**
 * One transfer as its end offers it to the other.
 *
 * @param send whether this end sends
 * @param key what the other end has to have for the same transfer
 * @param type of the elements
 * @param count of the elements; 0 in {@link #IDLE} only, as no transfer is empty
 * @param codec how the elements travel
 * @param failure why there will be no payload; empty when there will
 */
public record ManifestEntry(
    boolean send, long key, DataType type, long count, CodecKind codec, String failure) {
  /** No transfer: this end would give the communicator up, if the other would too. */
  public static final ManifestEntry IDLE = ManifestEntry.plain(false, 0, DataType.INT8, 0, "");

  /** Of elements that travel as they are. */
  public static ManifestEntry plain(
      boolean send, long key, DataType type, long count, String failure) {
    return new ManifestEntry(send, key, type, count, CodecKind.NONE, failure);
  }

  /** Whether the two ends mean the same transfer. */
  public boolean matches(ManifestEntry other) {
    return send != other.send
        && key == other.key
        && type == other.type
        && count == other.count
        && codec == other.codec;
  }

  /** Such as "key 7 (256 float32)" or "key 7 (256 float32 as ZSTD)". */
  @Override
  public String toString() {
    String form = codec == CodecKind.NONE ? "" : " as " + codec;
    return "key " + key + " (" + count + " " + type + form + ")";
  }
}
