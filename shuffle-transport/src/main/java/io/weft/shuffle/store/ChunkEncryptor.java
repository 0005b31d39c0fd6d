package io.weft.shuffle.store;

import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat.ChunkName;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;

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
    try {
      encrypt(name, chunk, encrypted, filled -> {});
    } catch (IOException e) {
      throw new UncheckedIOException(e); // Not thrown, as nothing is written.
    }
  }

  /**
   * Encrypts a chunk piece by piece, for chunks that are written to a stream.
   *
   * @param chunk from its position to its limit; neither changes
   * @param sink receives the encrypted bytes in order, in a buffer that is reused
   * @throws IOException if the sink throws it
   */
  void encrypt(ChunkName name, ByteBuffer chunk, PieceSink sink) throws IOException {
    ByteBuffer piece = ByteBuffer.allocate(EncryptedChunkFormat.ENCRYPTED_PIECE_BYTES);
    encrypt(
        name,
        chunk,
        piece,
        filled -> {
          sink.write(filled.flip());
          filled.clear();
        });
  }

  /** Receives encrypted bytes. */
  interface PieceSink {
    void write(ByteBuffer piece) throws IOException;
  }

  private void encrypt(ChunkName name, ByteBuffer chunk, ByteBuffer encrypted, PieceSink filled)
      throws IOException {
    Cipher cipher = idle.poll();
    try {
      cipher = cipher == null ? Cipher.getInstance(EncryptedChunkFormat.CIPHER) : cipher;
      encrypt(cipher, name.toBytes(), chunk.duplicate(), encrypted, filled);
      idle.add(cipher);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(
          "a chunk of " + chunk.remaining() + " bytes cannot be encrypted: " + e, e);
    }
  }

  private void encrypt(
      Cipher cipher, byte[] name, ByteBuffer chunk, ByteBuffer encrypted, PieceSink filled)
      throws GeneralSecurityException, IOException {
    long number = chunks.getAndIncrement();
    byte[] header = header(number, chunk.remaining());
    encrypted.put(header);
    filled.write(encrypted);
    int end = chunk.limit();
    long pieces = EncryptedChunkFormat.pieces(chunk.remaining());
    for (int piece = 0; piece < pieces; piece++) {
      chunk.limit((int) Math.min(end, (long) chunk.position() + EncryptedChunkFormat.PIECE_BYTES));
      cipher.init(Cipher.ENCRYPT_MODE, key.key(), EncryptedChunkFormat.nonce(number, piece));
      cipher.updateAAD(header);
      cipher.updateAAD(name);
      cipher.doFinal(chunk, encrypted);
      filled.write(encrypted);
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

  /**
   * The format of an encrypted chunk. Numbers are little-endian.
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
   * Each incarnation of an executor has its own salt. The key is derived from the salt and Spark's
   * key. The chunks of an incarnation have different numbers. The nonce of piece P is N (8 bytes)
   * and P (4 bytes). The tag of each piece also covers the header of 48 bytes and the chunk's
   * {@link ChunkName}, which is not stored. The last piece may be shorter. An empty chunk has one
   * empty piece.
   */
  public static final class EncryptedChunkFormat {
    /** Incremented with every change of the layout. */
    static final int VERSION = 2;

    static final int MAGIC = 0x45544657;
    static final int HEADER_BYTES = 48;
    static final int SALT_BYTES = 16;
    static final int PIECE_BYTES = 64 << 10;
    static final int TAG_BYTES = 16;
    static final int ENCRYPTED_PIECE_BYTES = PIECE_BYTES + TAG_BYTES;
    static final String CIPHER = "AES/GCM/NoPadding";

    /** The most bytes of an extent of an arena. */
    private static final long MAX_ENCRYPTED_BYTES = Integer.MAX_VALUE - 63L;

    /** The most bytes of a chunk that can be encrypted: its ciphertext must fit into an extent. */
    public static final long MAX_BYTES = maxBytes();

    private EncryptedChunkFormat() {}

    private static long maxBytes() {
      long available = MAX_ENCRYPTED_BYTES - HEADER_BYTES;
      long rest = Math.max(0, available % ENCRYPTED_PIECE_BYTES - TAG_BYTES);
      return available / ENCRYPTED_PIECE_BYTES * PIECE_BYTES + rest;
    }

    /**
     * The bytes of an encrypted chunk.
     *
     * @param bytes of the plain chunk, 0 to {@link #MAX_BYTES}; for more the result exceeds an
     *     extent
     */
    public static long encryptedBytes(long bytes) {
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

    /**
     * The name of a chunk: its map output, partition and position. A chunk that is encrypted under
     * one name cannot be decrypted under another, so exchanged chunks are detected. The encrypted
     * bytes do not contain the name; the reader knows which chunk it requested.
     *
     * @param shuffleId of the map output
     * @param mapId of the map output, different for each attempt of a map task
     * @param partition of the chunk
     * @param position among the chunks of its partition, from 0
     */
    public record ChunkName(int shuffleId, long mapId, int partition, int position) {
      private static final int BYTES = 3 * Integer.BYTES + Long.BYTES;

      /** The bytes that the authentication tags cover: the components in order, little-endian. */
      byte[] toBytes() {
        return ByteBuffer.allocate(BYTES)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putInt(shuffleId)
            .putLong(mapId)
            .putInt(partition)
            .putInt(position)
            .array();
      }
    }
  }
}
