package io.weft.shuffle.device;

/** The type of the values of a column. Kernels know it by its code. */
public enum ColumnKind {
  /** One byte, 0 or 1. */
  BOOLEAN(1, 1),
  BYTE(2, 1),
  SHORT(3, 2),
  INT(4, 4),
  LONG(5, 8),
  FLOAT(6, 4),
  DOUBLE(7, 8),
  /** Days since 1970-01-01. */
  DATE(8, 4),
  /** Microseconds, with or without a time zone. */
  TIMESTAMP(9, 8),
  /** Up to 18 digits: the unscaled value. */
  DECIMAL64(10, 8),
  /** Up to 38 digits: the unscaled value, lower half first. */
  DECIMAL128(11, 16),
  /** UTF-8 that is compared and hashed byte by byte. */
  STRING(12, 0),
  BINARY(13, 0),
  /** Rows of a tensor, all of one shape. */
  TENSOR(14, 0);

  private final int code;
  private final int bytes;

  ColumnKind(int code, int bytes) {
    this.code = code;
    this.bytes = bytes;
  }

  /** The code on devices and in messages. */
  int code() {
    return code;
  }

  /** Bytes of one value; 0 if the column defines it. */
  int bytes() {
    return bytes;
  }

  /** Whether values vary in length. */
  public boolean isString() {
    return this == STRING || this == BINARY;
  }

  /** Whether Spark can partition by it. */
  public boolean isKey() {
    return this != TENSOR;
  }

  static ColumnKind ofCode(int code) {
    for (ColumnKind kind : values()) {
      if (kind.code == code) {
        return kind;
      }
    }
    throw new IllegalArgumentException("no column kind has the code " + code);
  }
}
