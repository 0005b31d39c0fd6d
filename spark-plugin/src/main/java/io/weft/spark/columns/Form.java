package io.weft.spark.columns;

/** The storage format of a column's values in a chunk; see {@link ChunkFormat} for the buffers. */
enum Form {
  /** No buffers, every value is null. */
  NULL(0),
  /** One bit per value. */
  BOOLEAN(0),
  BYTE(1),
  SHORT(2),
  INT(4),
  LONG(8),
  FLOAT(4),
  DOUBLE(8),
  /** Decimals of up to 18 digits: the unscaled value in 8 bytes. */
  DECIMAL64(8),
  /** Longer decimals: the unscaled value in 16 bytes, two's complement. */
  DECIMAL128(16),
  /** UTF-8. */
  STRING(0),
  BINARY(0),
  /** Bytes that only Spark interprets; their accessor depends on the Spark version. */
  OPAQUE(0),
  LIST(0),
  MAP(0),
  STRUCT(0),
  /** A calendar interval: a struct of months, days and microseconds. */
  INTERVAL(0),
  /** A variant: a struct of its value's and its metadata's bytes. */
  VARIANT(0);

  private final int width;

  Form(int width) {
    this.width = width;
  }

  /** Bytes of a value of fixed width, else 0. */
  int width() {
    return width;
  }
}
