package io.weft.wire;

import java.util.HexFormat;

/**
 * Names a stream of chunks; chosen by the sender so that nobody else can guess it.
 *
 * @param high upper half
 * @param low lower half
 */
public record StreamId(long high, long low) {
  /** Of an answer without chunks, for which there is no stream. */
  public static final StreamId NONE = new StreamId(0, 0);

  /** 32 hex digits: the name under which the stream is asked for. */
  @Override
  public String toString() {
    return HexFormat.of().toHexDigits(high) + HexFormat.of().toHexDigits(low);
  }
}
