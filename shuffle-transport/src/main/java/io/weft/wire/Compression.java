package io.weft.wire;

/** How chunks may be packed on their way. */
public enum Compression {
  /** As they are. */
  NONE(0),
  /** LZ4 blocks, without a frame. */
  LZ4(1),
  /** Zstandard frames. */
  ZSTD(2);

  private final int code;

  Compression(int code) {
    this.code = code;
  }

  /** What messages carry. Codes are never used for another compression. */
  int code() {
    return code;
  }

  static Compression read(WireReader reader) throws WireException {
    int code = reader.int32("compression");
    for (Compression compression : values()) {
      if (compression.code == code) {
        return compression;
      }
    }
    throw new WireException(reader.message() + ": bad compression: " + code);
  }
}
