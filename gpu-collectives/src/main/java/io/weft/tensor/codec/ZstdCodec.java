package io.weft.tensor.codec;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdException;
import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;

/**
 * Encodes any type without loss. Within a piece, the first bytes of all elements come first, then
 * all second bytes and so on. This separates signs and exponents, which are similar, from
 * fractions, which are noise. The result is one Zstandard frame.
 *
 * <p>A piece is an int32 with its compressed length, followed by the compressed bytes. A piece that
 * does not shrink contains the bytes of its elements.
 */
final class ZstdCodec implements TensorCodec {
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
        header.checkBody(unpack(packed, length, shuffled, whole), "a frame cannot be decompressed");
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
