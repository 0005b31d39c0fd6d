package io.weft.tensor.codec;

import io.weft.collectives.DataType;
import io.weft.collectives.arithmetic.Float8;
import io.weft.tensor.codec.TensorCodec.PlainCodec;

/** The available codecs. */
@SuppressWarnings("ImmutableEnumChecker") // codecs are stateless
public enum CodecKind {
  /** The elements unchanged. */
  NONE(0, new PlainCodec()),
  /** float32 as bfloat16: half the bytes. */
  BFLOAT16(1, new BFloat16Codec()),
  /** float32 as 8-bit floats with 3 bits of fraction, scaled by tensor: a quarter of the bytes. */
  FLOAT8_E4M3(2, new Float8Codec(Float8.E4M3)),
  /** float32 as 8-bit floats with 2 bits of fraction, scaled by tensor: a quarter of the bytes. */
  FLOAT8_E5M2(3, new Float8Codec(Float8.E5M2)),
  /** Lossless: bytes of the same significance side by side, compressed by Zstandard. */
  ZSTD(4, new ZstdCodec());

  private final int code;
  private final TensorCodec codec;

  CodecKind(int code, TensorCodec codec) {
    this.code = code;
    this.codec = codec;
  }

  /** The number of the codec in a header, 0 to 255. */
  public int code() {
    return code;
  }

  /** The codec itself. */
  public TensorCodec codec() {
    return codec;
  }

  /** This kind if it encodes the type, otherwise {@link #NONE}. */
  public CodecKind orNone(DataType dtype) {
    return codec.encodes(dtype) ? this : NONE;
  }
}
