package io.weft.wire;

/** How chunks may be packed on their way. The ordinal is what messages carry. */
public enum Compression {
  /** As they are. */
  NONE,
  /** LZ4 blocks, without a frame. */
  LZ4,
  /** Zstandard frames. */
  ZSTD;

  static Compression read(WireReader reader) throws WireException {
    int number = reader.int32("compression");
    reader.require(number >= 0 && number < values().length, "compression", number);
    return values()[number];
  }
}
