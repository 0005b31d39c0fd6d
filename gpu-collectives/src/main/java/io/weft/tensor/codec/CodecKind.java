package io.weft.tensor.codec;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdException;
import io.weft.collectives.DataType;
import io.weft.collectives.arithmetic.Conversion;
import io.weft.collectives.arithmetic.Float8;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
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

  /**
   * Encodes float32 as bfloat16, rounded to nearest even.
   *
   * <p>For the decoded value y of a finite x: |x - y| ≤ |x| / 256 + 2^-134; the second term is for
   * x smaller than 2^-126. From (2 - 2^-8) · 2^127 on, halfway between the largest bfloat16 and
   * 2^128, y is an infinity of the same sign. Infinities and zeros of both signs are kept. A NaN
   * stays a NaN.
   */
  static final class BFloat16Codec implements TensorCodec {
    private static final int WIDTH = DataType.BFLOAT16.bytes();

    @Override
    public boolean encodes(DataType dtype) {
      return dtype == DataType.FLOAT32;
    }

    @Override
    public TensorEncoder encoder(Tensor tensor) {
      TensorEncoder.require(this, CodecKind.BFLOAT16, tensor);
      return new TensorEncoder(tensor, new TensorHeader(CodecKind.BFLOAT16, tensor.type(), 0)) {
        @Override
        int encode(long from, int elements, long to) {
          Conversion.narrow(DataType.BFLOAT16, from, to, elements, 1);
          return WIDTH * elements;
        }
      };
    }

    @Override
    public int pieceBound(DataType dtype, int elements) {
      return WIDTH * elements;
    }

    @Override
    public void checkBody(TensorHeader header, long body, long bytes) {
      long expected = WIDTH * header.type().elements();
      header.checkBody(bytes == expected, "it has " + bytes + " bytes, not " + expected);
    }

    @Override
    public void decode(TensorHeader header, long body, long bytes, long to) {
      Conversion.widen(DataType.BFLOAT16, body, to, header.type().elements());
    }
  }

  /**
   * Encodes float32 as 8-bit floats, multiplied by a power of two that fits the tensor.
   *
   * <p>With amax the largest finite magnitude, the scale is the largest 2^k for which amax · 2^k is
   * at most the largest 8-bit value. It is 1 if zero is the only finite value. Multiplication by a
   * power of two is exact, and 2^-k is its exact reciprocal. The header holds k. Both sides compute
   * the factor as a double, so that no k is too large.
   *
   * <p>For the decoded value y of a finite x:
   *
   * <ul>
   *   <li>E4M3: |x - y| ≤ max(|x| / 16, amax / 2^17) + 2^-150
   *   <li>E5M2: |x - y| ≤ max(|x| / 8, amax / 2^31) + 2^-150
   * </ul>
   *
   * <p>A finite value stays finite. A NaN stays a NaN. E5M2 keeps an infinity. E4M3 has no
   * infinity, so it becomes a NaN, and an overflow stays visible. The sign of zero is kept.
   */
  static final class Float8Codec implements TensorCodec {
    private static final int WIDE = DataType.FLOAT32.bytes();
    private static final int INFINITY = 0x7f800000;

    private final Float8 format;

    Float8Codec(Float8 format) {
      this.format = format;
    }

    private CodecKind kind() {
      return format == Float8.E4M3 ? CodecKind.FLOAT8_E4M3 : CodecKind.FLOAT8_E5M2;
    }

    @Override
    public boolean encodes(DataType dtype) {
      return dtype == DataType.FLOAT32;
    }

    @Override
    public TensorEncoder encoder(Tensor tensor) {
      TensorEncoder.require(this, kind(), tensor);
      int exponent = scaleExponent(amax(tensor.address(), tensor.type().elements()));
      double scale = Math.scalb(1.0, exponent);
      return new TensorEncoder(tensor, new TensorHeader(kind(), tensor.type(), exponent)) {
        @Override
        int encode(long from, int elements, long to) {
          for (int i = 0; i < elements; i++) {
            float scaled = (float) (Memory.getFloat(from + (long) WIDE * i) * scale);
            Memory.putByte(to + i, format.fromFloat(scaled));
          }
          return elements;
        }
      };
    }

    /** The largest finite magnitude; 0 if there is none. */
    private static float amax(long address, long elements) {
      int most = 0;
      for (long i = 0; i < elements; i++) {
        int magnitude = Memory.getInt(address + WIDE * i) & 0x7fffffff;
        // Finite floats have the order of their bits.
        if (magnitude < INFINITY) {
          most = Math.max(most, magnitude);
        }
      }
      return Float.intBitsToFloat(most);
    }

    private int scaleExponent(float amax) {
      if (amax == 0) {
        return 0;
      }
      // Uses doubles, in which no float32 is subnormal.
      int exponent = Math.getExponent((double) format.largest()) - Math.getExponent((double) amax);
      return Math.scalb((double) amax, exponent) <= format.largest() ? exponent : exponent - 1;
    }

    @Override
    public int pieceBound(DataType dtype, int elements) {
      return elements;
    }

    @Override
    public void checkBody(TensorHeader header, long body, long bytes) {
      long expected = header.type().elements();
      header.checkBody(bytes == expected, "it has " + bytes + " bytes, not " + expected);
    }

    @Override
    public void decode(TensorHeader header, long body, long bytes, long to) {
      double inverse = Math.scalb(1.0, -header.scaleExponent());
      for (long i = 0; i < bytes; i++) {
        float narrow = format.toFloat(Memory.getByte(body + i));
        Memory.putFloat(to + WIDE * i, unscaled(narrow, inverse));
      }
    }

    /** Limits the value, because the largest float32 may have been rounded up to 2^128. */
    private static float unscaled(float narrow, double inverse) {
      float wide = (float) (narrow * inverse);
      return Float.isInfinite(wide) && !Float.isInfinite(narrow)
          ? Math.copySign(Float.MAX_VALUE, narrow)
          : wide;
    }
  }

  /**
   * Encodes any type without loss. Within a piece, the first bytes of all elements come first, then
   * all second bytes and so on. This separates signs and exponents, which are similar, from
   * fractions, which are noise. The result is one Zstandard frame.
   *
   * <p>A piece is an int32 with its compressed length, followed by the compressed bytes. A piece
   * that does not shrink contains the bytes of its elements.
   */
  static final class ZstdCodec implements TensorCodec {
    private static final int LEVEL = 1;
    private static final int LENGTH = Integer.BYTES;

    /** The longest header of a frame. */
    private static final int FRAME_HEADER = 18;

    @Override
    public boolean encodes(DataType dtype) {
      return true;
    }

    @Override
    public TensorEncoder encoder(Tensor tensor) {
      return new PackingEncoder(tensor);
    }

    private static final class PackingEncoder extends TensorEncoder {
      private final int width;
      private byte[] raw = {};
      private byte[] shuffled = {};
      private byte[] packed = {};

      PackingEncoder(Tensor tensor) {
        super(tensor, new TensorHeader(CodecKind.ZSTD, tensor.type(), 0));
        this.width = tensor.type().dtype().bytes();
      }

      @Override
      int encode(long from, int elements, long to) {
        int bytes = width * elements;
        if (raw.length < bytes) {
          raw = new byte[bytes];
          shuffled = new byte[bytes];
          packed = new byte[(int) Zstd.compressBound(bytes)];
        }
        Memory.copyTo(from, raw, Memory.BYTE_ARRAY, bytes);
        shuffle(raw, shuffled, elements, width);
        long size = Zstd.compressByteArray(packed, 0, packed.length, shuffled, 0, bytes, LEVEL);
        boolean shrank = size < bytes;
        int length = shrank ? (int) size : bytes;
        Memory.putInt(to, length);
        Memory.copyFrom(shrank ? packed : raw, Memory.BYTE_ARRAY, to + LENGTH, length);
        return LENGTH + length;
      }
    }

    private static void shuffle(byte[] from, byte[] to, int elements, int width) {
      for (int lane = 0; lane < width; lane++) {
        for (int i = 0; i < elements; i++) {
          to[lane * elements + i] = from[i * width + lane];
        }
      }
    }

    private static void unshuffle(byte[] from, byte[] to, int elements, int width) {
      for (int lane = 0; lane < width; lane++) {
        for (int i = 0; i < elements; i++) {
          to[i * width + lane] = from[lane * elements + i];
        }
      }
    }

    @Override
    public int pieceBound(DataType dtype, int elements) {
      return elements == 0 ? 0 : LENGTH + dtype.bytes() * elements;
    }

    @Override
    public void checkBody(TensorHeader header, long body, long bytes) {
      int width = header.type().dtype().bytes();
      byte[] frame = new byte[FRAME_HEADER];
      long at = 0;
      for (long left = header.type().elements(); left > 0; left -= TensorEncoder.PIECE_ELEMENTS) {
        int whole = width * (int) Math.min(TensorEncoder.PIECE_ELEMENTS, left);
        header.checkBody(bytes - at >= LENGTH, "it is truncated");
        int length = Memory.getInt(body + at);
        at += LENGTH;
        header.checkBody(length > 0 && length <= whole, length + " bytes for " + whole);
        header.checkBody(length <= bytes - at, "it is truncated");
        if (length < whole) {
          int seen = Math.min(length, FRAME_HEADER);
          Memory.copyTo(body + at, frame, Memory.BYTE_ARRAY, seen);
          header.checkBody(
              Zstd.getFrameContentSize(frame, 0, seen) == whole, "a frame of another size");
        }
        at += length;
      }
      header.checkBody(at == bytes, bytes - at + " bytes too many");
    }

    @Override
    public void decode(TensorHeader header, long body, long bytes, long to) {
      int width = header.type().dtype().bytes();
      int most = width * (int) Math.min(TensorEncoder.PIECE_ELEMENTS, header.type().elements());
      byte[] packed = new byte[most];
      byte[] shuffled = new byte[most];
      byte[] raw = new byte[most];
      long from = body;
      long target = to;
      for (long left = header.type().elements(); left > 0; left -= TensorEncoder.PIECE_ELEMENTS) {
        int elements = (int) Math.min(TensorEncoder.PIECE_ELEMENTS, left);
        int whole = width * elements;
        int length = Memory.getInt(from);
        from += LENGTH;
        if (length == whole) {
          Memory.copy(from, target, whole);
        } else {
          Memory.copyTo(from, packed, Memory.BYTE_ARRAY, length);
          header.checkBody(
              unpack(packed, length, shuffled, whole), "a frame cannot be decompressed");
          unshuffle(shuffled, raw, elements, width);
          Memory.copyFrom(raw, Memory.BYTE_ARRAY, target, whole);
        }
        from += length;
        target += whole;
      }
    }

    private static boolean unpack(byte[] packed, int length, byte[] to, int bytes) {
      try {
        return Zstd.decompressByteArray(to, 0, bytes, packed, 0, length) == bytes;
      } catch (ZstdException e) {
        return false;
      }
    }
  }
}
