package io.weft.encryption;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import javax.crypto.Cipher;

/**
 * Seals the chunks of one life of an executor. No two of them get the same number, and its salt is
 * its own, so no nonce is used twice with a key. Thread-safe.
 */
public final class ChunkSealer {
  private final byte[] salt = new byte[SealedFormat.SALT_BYTES];
  private final SealingKey.Derived key;
  private final AtomicLong chunks = new AtomicLong();

  /** Ciphers that nobody uses at the moment: at most one for each thread that ever sealed. */
  private final ConcurrentLinkedQueue<Cipher> idle = new ConcurrentLinkedQueue<>();

  /** Begins with a salt of its own. */
  public ChunkSealer(SealingKey key) {
    new SecureRandom().nextBytes(salt);
    this.key = key.derive(salt);
  }

  /**
   * Seals a chunk.
   *
   * @param name under which alone it can be opened
   * @param chunk from its position to its limit, neither of which changes
   * @param sealed room for {@link SealedFormat#sealedBytes}, filled from its position, which moves
   *     behind the last byte; must not overlap the chunk
   */
  public void seal(ChunkName name, ByteBuffer chunk, ByteBuffer sealed) {
    Cipher cipher = idle.poll();
    try {
      cipher = cipher == null ? Cipher.getInstance(SealedFormat.CIPHER) : cipher;
      seal(cipher, name.toBytes(), chunk.duplicate(), sealed);
      idle.add(cipher);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(
          "a chunk of " + chunk.remaining() + " bytes cannot be encrypted: " + e, e);
    }
  }

  private void seal(Cipher cipher, byte[] name, ByteBuffer chunk, ByteBuffer sealed)
      throws GeneralSecurityException {
    long number = chunks.getAndIncrement();
    byte[] header = header(number, chunk.remaining());
    sealed.put(header);
    int end = chunk.limit();
    long pieces = SealedFormat.pieces(chunk.remaining());
    for (int piece = 0; piece < pieces; piece++) {
      chunk.limit((int) Math.min(end, (long) chunk.position() + SealedFormat.PIECE_BYTES));
      cipher.init(Cipher.ENCRYPT_MODE, key.key(), SealedFormat.nonce(number, piece));
      cipher.updateAAD(header);
      cipher.updateAAD(name);
      cipher.doFinal(chunk, sealed);
    }
  }

  private byte[] header(long number, long bytes) {
    return ByteBuffer.allocate(SealedFormat.HEADER_BYTES)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(SealedFormat.MAGIC)
        .putInt(SealedFormat.VERSION)
        .put(salt)
        .putLong(number)
        .putLong(key.check())
        .putLong(bytes)
        .array();
  }
}
