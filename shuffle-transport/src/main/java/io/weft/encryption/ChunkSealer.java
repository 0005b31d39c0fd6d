package io.weft.encryption;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import javax.crypto.Cipher;

/**
 * Encrypts the chunks of one incarnation of an executor. Each chunk gets a unique number and each
 * incarnation a random salt, so no nonce is used twice with a key. Thread-safe.
 */
public final class ChunkSealer {
  private final byte[] salt = new byte[SealedFormat.SALT_BYTES];
  private final SealingKey.Derived key;
  private final AtomicLong chunks = new AtomicLong();

  /** Idle ciphers, at most one for each thread that ever encrypted. */
  private final ConcurrentLinkedQueue<Cipher> idle = new ConcurrentLinkedQueue<>();

  /** Derives a key with a random salt. */
  public ChunkSealer(SealingKey key) {
    new SecureRandom().nextBytes(salt);
    this.key = key.derive(salt);
  }

  /**
   * Encrypts a chunk.
   *
   * @param name that is needed to decrypt the chunk
   * @param chunk from its position to its limit; neither changes
   * @param encrypted buffer for {@link SealedFormat#sealedBytes} bytes, filled from its position,
   *     which moves after the last byte; must not overlap the chunk
   */
  public void seal(ChunkName name, ByteBuffer chunk, ByteBuffer encrypted) {
    Cipher cipher = idle.poll();
    try {
      cipher = cipher == null ? Cipher.getInstance(SealedFormat.CIPHER) : cipher;
      seal(cipher, name.toBytes(), chunk.duplicate(), encrypted);
      idle.add(cipher);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(
          "a chunk of " + chunk.remaining() + " bytes cannot be encrypted: " + e, e);
    }
  }

  private void seal(Cipher cipher, byte[] name, ByteBuffer chunk, ByteBuffer encrypted)
      throws GeneralSecurityException {
    long number = chunks.getAndIncrement();
    byte[] header = header(number, chunk.remaining());
    encrypted.put(header);
    int end = chunk.limit();
    long pieces = SealedFormat.pieces(chunk.remaining());
    for (int piece = 0; piece < pieces; piece++) {
      chunk.limit((int) Math.min(end, (long) chunk.position() + SealedFormat.PIECE_BYTES));
      cipher.init(Cipher.ENCRYPT_MODE, key.key(), SealedFormat.nonce(number, piece));
      cipher.updateAAD(header);
      cipher.updateAAD(name);
      cipher.doFinal(chunk, encrypted);
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
