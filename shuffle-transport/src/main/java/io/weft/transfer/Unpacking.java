package io.weft.transfer;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdException;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.weft.integrity.ChecksumException;
import io.weft.wire.Compression;
import java.nio.ByteBuffer;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;

/** Unpacks chunks into memory of exactly their size. Stateless. */
final class Unpacking {
  private static final LZ4SafeDecompressor LZ4 = LZ4Factory.fastestInstance().safeDecompressor();

  private Unpacking() {}

  /**
   * Unpacks all of one buffer into all of another one. Nothing is written beyond its end, whatever
   * the packed bytes say.
   *
   * @param packed from its position to its limit
   * @param whole a direct buffer
   * @throws ChecksumException if that is not what the packed bytes hold
   */
  static void unpack(Compression compression, ByteBuffer packed, ByteBuffer whole)
      throws ChecksumException {
    long bytes =
        switch (compression) {
          case LZ4 -> lz4(packed, whole);
          case ZSTD -> zstd(packed, whole);
          case NONE -> -1;
        };
    if (bytes != whole.capacity()) {
      throw new ChecksumException(
          "%d packed bytes (%s) unpack to %s instead of %d bytes"
              .formatted(
                  packed.remaining(),
                  compression,
                  bytes < 0 ? "nothing" : Long.toString(bytes),
                  whole.capacity()));
    }
  }

  private static long lz4(ByteBuffer packed, ByteBuffer whole) {
    try {
      return LZ4.decompress(
          packed, packed.position(), packed.remaining(), whole, 0, whole.capacity());
    } catch (LZ4Exception e) {
      return -1;
    }
  }

  private static long zstd(ByteBuffer packed, ByteBuffer whole) {
    if (packed.isDirect()) {
      return zstdDirect(packed, whole);
    }
    // Encrypted connections hand over arrays.
    ByteBuf copy = PooledByteBufAllocator.DEFAULT.directBuffer(packed.remaining());
    try {
      return zstdDirect(copy.writeBytes(packed.duplicate()).nioBuffer(), whole);
    } finally {
      copy.release();
    }
  }

  private static long zstdDirect(ByteBuffer packed, ByteBuffer whole) {
    try {
      return Zstd.decompressDirectByteBuffer(
          whole, 0, whole.capacity(), packed, packed.position(), packed.remaining());
    } catch (ZstdException e) {
      return -1;
    }
  }
}
