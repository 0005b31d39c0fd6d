package io.weft.crosshost.wire;

import io.weft.collectives.buffer.DataType;
import io.weft.tensor.codec.CodecKind;

/**
 * One transfer as its end offers it to the other.
 *
 * @param send whether this end sends
 * @param key what the other end has to have for the same transfer
 * @param type of the elements
 * @param count of the elements; 0 in {@link #IDLE} and verdicts only, as no transfer is empty
 * @param codec how the elements travel
 * @param failure why there will be no payload; empty when there will
 * @param recorded whether the work that writes the elements is recorded and not complete: the
 *     payload is good only if the verdict, with the manifest after it has moved, says so
 */
public record ManifestEntry(
    boolean send,
    long key,
    DataType type,
    long count,
    CodecKind codec,
    String failure,
    boolean recorded) {
  /** No transfer: this end would give the communicator up, if the other would too. */
  public static final ManifestEntry IDLE = ManifestEntry.plain(false, 0, DataType.INT8, 0, "");

  /** Of elements that are there. */
  public ManifestEntry(
      boolean send, long key, DataType type, long count, CodecKind codec, String failure) {
    this(send, key, type, count, codec, failure, false);
  }

  /**
   * No transfer, but what this end has to say of those that it sent behind recorded work.
   *
   * @param failure of that work; empty when it has ended well
   */
  public static ManifestEntry verdict(String failure) {
    return ManifestEntry.plain(true, 0, DataType.INT8, 0, failure);
  }

  /** Whether this is no transfer but a {@link #verdict}. */
  public boolean isVerdict() {
    return send && count == 0;
  }

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
