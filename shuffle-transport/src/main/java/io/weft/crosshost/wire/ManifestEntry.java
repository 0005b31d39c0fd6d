package io.weft.crosshost.wire;

import io.weft.collectives.buffer.DataType;
import io.weft.tensor.codec.CodecKind;

/**
 * One transfer, as one end offers it to the other.
 *
 * @param send whether this end sends
 * @param key the other end must have the same key
 * @param type of the elements
 * @param count number of elements; 0 only in {@link #IDLE} and verdicts
 * @param codec of the elements
 * @param failure why no payload follows; empty if it follows
 * @param recorded whether the work that writes the elements is recorded and not complete; then the
 *     payload is valid only if the verdict in the manifest after the move says so
 */
public record ManifestEntry(
    boolean send,
    long key,
    DataType type,
    long count,
    CodecKind codec,
    String failure,
    boolean recorded) {
  /** No transfer: this end gives up the communicator if the other end also does. */
  public static final ManifestEntry IDLE = ManifestEntry.plain(false, 0, DataType.INT8, 0, "");

  /** An entry for elements that are complete. */
  public ManifestEntry(
      boolean send, long key, DataType type, long count, CodecKind codec, String failure) {
    this(send, key, type, count, codec, failure, false);
  }

  /**
   * No transfer, but the verdict of this end on its sends behind recorded work.
   *
   * @param failure of that work; empty if it succeeded
   */
  public static ManifestEntry verdict(String failure) {
    return ManifestEntry.plain(true, 0, DataType.INT8, 0, failure);
  }

  /** Whether this entry is a {@link #verdict}. */
  public boolean isVerdict() {
    return send && count == 0;
  }

  /** An entry for elements without a codec. */
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

  /** For example "key 7 (256 float32)" or "key 7 (256 float32 as ZSTD)". */
  @Override
  public String toString() {
    String form = codec == CodecKind.NONE ? "" : " as " + codec;
    return "key " + key + " (" + count + " " + type + form + ")";
  }
}
