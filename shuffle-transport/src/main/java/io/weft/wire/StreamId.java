package io.weft.wire;

import java.util.HexFormat;

/**
 * The id of a stream of chunks. The sender chooses it at random, so that other peers cannot guess
 * it.
 *
 * @param high upper half
 * @param low lower half
 */
public record StreamId(long high, long low) {
  /** The id in an answer without chunks, which has no stream. */
  public static final StreamId NONE = new StreamId(0, 0);

  /** The name of the stream in Spark's transport: 32 hex digits. */
  @Override
  public String toString() {
    return HexFormat.of().toHexDigits(high) + HexFormat.of().toHexDigits(low);
  }
}
