package io.weft.shuffle.net;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.weft.shuffle.net.MessageHeader.WireReader;
import io.weft.shuffle.store.Checksum.ChecksumException;
import java.nio.ByteBuffer;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;

/** The codecs that compress chunks for the network. The only place that calls LZ4 and Zstandard. */
public enum Compression {
  /** No compression. */
  NONE(0),
  /** LZ4 blocks, without a frame. */
  LZ4(1),
  /** Zstandard frames. */
  ZSTD(2);

  private static final int ZSTD_LEVEL = 1;

  private final int code;

  Compression(int code) {
    this.code = code;
  }

  /** Loaded with the first chunk, not with the settings. */
  private static final class Lz4 {
    private static final LZ4Compressor COMPRESSOR = LZ4Factory.fastestInstance().fastCompressor();
    private static final LZ4SafeDecompressor DECOMPRESSOR =
        LZ4Factory.fastestInstance().safeDecompressor();
  }

  /** Which compression the requests of an executor ask for. */
  public enum Rule {
    /** Each request the one that pays by the measured rates of the network and of the codecs. */
    AUTO,
    /** None. */
    NONE,
    /** Always LZ4. */
    LZ4,
    /** Always Zstandard. */
    ZSTD
  }

  /** The code in messages. A code is never reused for another codec. */
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

  /**
   * Compresses a buffer.
   *
   * @param bytes a direct buffer, from 0 to its limit
   * @param target a direct buffer, filled from 0 on
   * @param limit the most bytes to write
   * @return the compressed bytes, or 0 if they do not fit into the limit
   */
  public int compress(ByteBuffer bytes, ByteBuffer target, int limit) {
    return switch (this) {
      case LZ4 -> compressLz4(bytes, target, limit);
      case ZSTD -> compressZstd(bytes, target, limit);
      case NONE -> 0;
    };
  }

  private static int compressLz4(ByteBuffer bytes, ByteBuffer target, int limit) {
    try {
      return Lz4.COMPRESSOR.compress(bytes, 0, bytes.limit(), target, 0, limit);
    } catch (LZ4Exception e) {
      return 0;
    }
  }

  private static int compressZstd(ByteBuffer bytes, ByteBuffer target, int limit) {
    try {
      return (int)
          Zstd.compressDirectByteBuffer(target, 0, limit, bytes, 0, bytes.limit(), ZSTD_LEVEL);
    } catch (ZstdException e) {
      return 0;
    }
  }

  /**
   * Decompresses all of one buffer into all of another one. Writes nothing beyond the target's end,
   * for any input.
   *
   * @param compressed from its position to its limit
   * @param target a direct buffer of exactly the chunk's size
   * @throws ChecksumException if the bytes are damaged or have another size
   */
  public void decompressWhole(ByteBuffer compressed, ByteBuffer target) throws ChecksumException {
    long bytes = decompress(compressed, target);
    if (bytes != target.capacity()) {
      throw new ChecksumException(
          "%d compressed bytes (%s) decompress to %s instead of %d bytes"
              .formatted(
                  compressed.remaining(),
                  this,
                  bytes < 0 ? "nothing" : Long.toString(bytes),
                  target.capacity()));
    }
  }

  /** Returns the decompressed bytes, or a negative number if the input is damaged. */
  private long decompress(ByteBuffer compressed, ByteBuffer target) {
    return switch (this) {
      case LZ4 -> decompressLz4(compressed, target);
      case ZSTD -> decompressZstd(compressed, target);
      case NONE -> -1;
    };
  }

  private static long decompressLz4(ByteBuffer compressed, ByteBuffer target) {
    try {
      return Lz4.DECOMPRESSOR.decompress(
          compressed, compressed.position(), compressed.remaining(), target, 0, target.capacity());
    } catch (LZ4Exception e) {
      return -1;
    }
  }

  private static long decompressZstd(ByteBuffer compressed, ByteBuffer target) {
    if (compressed.isDirect()) {
      return decompressZstdDirect(compressed, target);
    }
    // Encrypted connections deliver arrays.
    ByteBuf copy = PooledByteBufAllocator.DEFAULT.directBuffer(compressed.remaining());
    try {
      return decompressZstdDirect(copy.writeBytes(compressed.duplicate()).nioBuffer(), target);
    } finally {
      copy.release();
    }
  }

  private static long decompressZstdDirect(ByteBuffer compressed, ByteBuffer target) {
    try {
      return Zstd.decompressDirectByteBuffer(
          target, 0, target.capacity(), compressed, compressed.position(), compressed.remaining());
    } catch (ZstdException e) {
      return -1;
    }
  }
}
