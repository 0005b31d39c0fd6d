package io.weft.shuffle.store;

import io.weft.shuffle.store.EncryptedChunkFormat.ChunkName;
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
public final class ChunkEncryptor {
  private final byte[] salt = new byte[EncryptedChunkFormat.SALT_BYTES];
  private final EncryptionKey.Derived key;
  private final AtomicLong chunks = new AtomicLong();

  /** Idle ciphers, at most one for each thread that ever encrypted. */
  private final ConcurrentLinkedQueue<Cipher> idle = new ConcurrentLinkedQueue<>();

  /** Derives a key with a random salt. */
  public ChunkEncryptor(EncryptionKey key) {
    new SecureRandom().nextBytes(salt);
    this.key = key.derive(salt);
  }

  /**
   * Encrypts a chunk.
   *
   * @param name that is needed to decrypt the chunk
   * @param chunk from its position to its limit; neither changes
   * @param encrypted buffer for {@link EncryptedChunkFormat#encryptedBytes} bytes, filled from its
   *     position, which moves after the last byte; must not overlap the chunk
   */
  public void encrypt(ChunkName name, ByteBuffer chunk, ByteBuffer encrypted) {
    Cipher cipher = idle.poll();
    try {
      cipher = cipher == null ? Cipher.getInstance(EncryptedChunkFormat.CIPHER) : cipher;
      encrypt(cipher, name.toBytes(), chunk.duplicate(), encrypted);
      idle.add(cipher);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(
          "a chunk of " + chunk.remaining() + " bytes cannot be encrypted: " + e, e);
    }
  }

  private void encrypt(Cipher cipher, byte[] name, ByteBuffer chunk, ByteBuffer encrypted)
      throws GeneralSecurityException {
    long number = chunks.getAndIncrement();
    byte[] header = header(number, chunk.remaining());
    encrypted.put(header);
    int end = chunk.limit();
    long pieces = EncryptedChunkFormat.pieces(chunk.remaining());
    for (int piece = 0; piece < pieces; piece++) {
      chunk.limit((int) Math.min(end, (long) chunk.position() + EncryptedChunkFormat.PIECE_BYTES));
      cipher.init(Cipher.ENCRYPT_MODE, key.key(), EncryptedChunkFormat.nonce(number, piece));
      cipher.updateAAD(header);
      cipher.updateAAD(name);
      cipher.doFinal(chunk, encrypted);
    }
  }

  private byte[] header(long number, long bytes) {
    return ByteBuffer.allocate(EncryptedChunkFormat.HEADER_BYTES)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putInt(EncryptedChunkFormat.MAGIC)
        .putInt(EncryptedChunkFormat.VERSION)
        .put(salt)
        .putLong(number)
        .putLong(key.check())
        .putLong(bytes)
        .array();
  }
}
