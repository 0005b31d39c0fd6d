package io.weft.encryption;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import javax.crypto.spec.GCMParameterSpec;

/**
 * The bytes of a sealed chunk. Numbers are little-endian.
 *
 * <pre>
 *   0               4               8               12              16
 *  +---------------+---------------+---------------+---------------+
 *  | magic "WFTE"  | version       | salt ...                      |
 *  +---------------+---------------+---------------+---------------+
 *  | ... salt                      | number of the chunk N         |
 *  +---------------+---------------+---------------+---------------+
 *  | check of the key              | bytes of the chunk L          |
 *  +---------------+---------------+---------------+---------------+
 *  | pieces: 64 KiB of the chunk, AES-GCM, and 16 bytes of tag     |
 *  +---------------------------------------------------------------+
 * </pre>
 *
 * The salt is that of one life of an executor, and so is the key that is made of it and Spark's; no
 * two chunks of that life have the same number. The nonce of piece P is N (8 bytes) and P (4
 * bytes). Each piece's tag covers the 48 bytes of the header as well, and the chunk's {@link
 * ChunkName}, which is not among the bytes. The last piece is as long as what is left; a chunk of
 * no bytes has one piece of none.
 */
public final class SealedFormat {
  /** Raised with every change of the layout. */
  static final int VERSION = 2;

  static final int MAGIC = 0x45544657;
  static final int HEADER_BYTES = 48;
  static final int SALT_BYTES = 16;
  static final int PIECE_BYTES = 64 << 10;
  static final int TAG_BYTES = 16;
  static final int SEALED_PIECE_BYTES = PIECE_BYTES + TAG_BYTES;
  static final String CIPHER = "AES/GCM/NoPadding";

  /** No extent of an arena is longer. */
  private static final long MOST_SEALED_BYTES = Integer.MAX_VALUE - 63L;

  /** No longer chunk can be sealed: it would not fit into an extent of an arena. */
  public static final long MOST_BYTES = mostBytes();

  private SealedFormat() {}

  private static long mostBytes() {
    long room = MOST_SEALED_BYTES - HEADER_BYTES;
    long rest = Math.max(0, room % SEALED_PIECE_BYTES - TAG_BYTES);
    return room / SEALED_PIECE_BYTES * PIECE_BYTES + rest;
  }

  /**
   * How long a chunk is when it is sealed.
   *
   * @param bytes of the chunk, 0 to {@link #MOST_BYTES}; of more the result is right, but too much
   */
  public static long sealedBytes(long bytes) {
    return HEADER_BYTES + bytes + TAG_BYTES * pieces(bytes);
  }

  static long pieces(long bytes) {
    return Math.max(1, (bytes + PIECE_BYTES - 1) / PIECE_BYTES);
  }

  static GCMParameterSpec nonce(long number, int piece) {
    byte[] nonce = new byte[Long.BYTES + Integer.BYTES];
    ByteBuffer.wrap(nonce).order(ByteOrder.LITTLE_ENDIAN).putLong(number).putInt(piece);
    return new GCMParameterSpec(Byte.SIZE * TAG_BYTES, nonce);
  }
}
