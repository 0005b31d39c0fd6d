package io.weft.collectives;

/** Element types of a {@link TypedBuffer}. Values have the byte order of the machine. */
public enum DataType {
  INT8(1, "int8", 1),
  INT16(2, "int16", 2),
  INT32(3, "int32", 4),
  INT64(4, "int64", 8),
  /** IEEE 754 binary16. */
  FLOAT16(5, "float16", 2),
  /** The upper half of a float32: 8 bits of exponent, 7 of fraction. */
  BFLOAT16(6, "bfloat16", 2),
  FLOAT32(7, "float32", 4),
  FLOAT64(8, "float64", 8);

  private final int code;
  private final String text;
  private final int bytes;

  DataType(int code, String text, int bytes) {
    this.code = code;
    this.text = text;
    this.bytes = bytes;
  }

  /** The code of the type in messages between ranks, 1 to 254. */
  public int code() {
    return code;
  }

  /** Bytes of one element. */
  public int bytes() {
    return bytes;
  }

  /** The type that reductions compute in: float32 for the 16-bit floats, otherwise this one. */
  public DataType accumulator() {
    return this == FLOAT16 || this == BFLOAT16 ? FLOAT32 : this;
  }

  /**
   * The type with this name.
   *
   * @param text as {@link #toString} gives it
   */
  public static DataType parse(String text) {
    for (DataType type : values()) {
      if (type.text.equals(text)) {
        return type;
      }
    }
    throw new IllegalArgumentException("no data type is called " + text);
  }

  /** The name in array libraries, such as float32. */
  @Override
  public String toString() {
    return text;
  }
}
