package io.weft.shuffle.store;

import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat.ChunkName;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Optional;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;

/**
 * Decrypts chunks, one after the other. A chunk may arrive in any number of parts. Buffers at most
 * one encrypted piece of 64 KiB and no plain bytes. For one thread at a time.
 */
public final class ChunkDecryptor {
  private final Optional<EncryptionKey> secret;
  private final byte[] headerBytes = new byte[EncryptedChunkFormat.HEADER_BYTES];
  private final ByteBuffer header = ByteBuffer.wrap(headerBytes).order(ByteOrder.LITTLE_ENDIAN);
  private byte[] salt;
  private EncryptionKey.Derived key;
  private Cipher cipher;

  /** Collects a piece that arrives in several parts; null before the first one. */
  private ByteBuffer gathered;

  private ByteBuffer whole;
  private byte[] name;
  private long number;
  private int piece;

  /** Decrypts chunks of this key. Without a key, every chunk fails. */
  public ChunkDecryptor(Optional<EncryptionKey> secret) {
    this.secret = secret;
  }

  /**
   * Decrypts a complete chunk.
   *
   * @param as name of the requested chunk
   * @param encrypted from its position to its limit; its position moves to its limit
   * @param chunk buffer of exactly the plain size, filled from 0 to its capacity
   * @throws ChecksumException if the bytes are damaged
   * @throws IOException if the chunk was encrypted with another key, or there is no key
   */
  public void decrypt(ChunkName as, ByteBuffer encrypted, ByteBuffer chunk) throws IOException {
    begin(as, chunk);
    accept(encrypted);
    end();
  }

  /**
   * Begins a chunk.
   *
   * @param as as in {@link #decrypt}
   * @param chunk as in {@link #decrypt}
   */
  public void begin(ChunkName as, ByteBuffer chunk) {
    header.clear();
    name = as.toBytes();
    whole = chunk.duplicate().clear();
    piece = 0;
    if (gathered != null) {
      gathered.clear();
    }
  }

  /**
   * Decrypts the next part of a chunk. Consumes all of it.
   *
   * @throws IOException as {@link #decrypt} does
   */
  public void accept(ByteBuffer encrypted) throws IOException {
    if (header.hasRemaining()) {
      fill(header, encrypted, header.remaining());
      if (!header.hasRemaining()) {
        readHeader();
      }
    }
    while (encrypted.hasRemaining() && !header.hasRemaining()) {
      int wanted = pieceBytes();
      boolean started = gathered != null && gathered.position() > 0;
      if (!started && encrypted.remaining() >= wanted) {
        ByteBuffer direct = encrypted.slice(encrypted.position(), wanted);
        encrypted.position(encrypted.position() + wanted);
        decryptPiece(direct);
      } else {
        gather(encrypted, wanted);
      }
    }
  }

  private void gather(ByteBuffer encrypted, int wanted) throws IOException {
    if (gathered == null) {
      gathered = ByteBuffer.allocate(EncryptedChunkFormat.ENCRYPTED_PIECE_BYTES);
    }
    fill(gathered, encrypted, wanted - gathered.position());
    if (gathered.position() == wanted) {
      decryptPiece(gathered.flip());
      gathered.clear();
    }
  }

  private static void fill(ByteBuffer to, ByteBuffer from, int wanted) {
    int count = Math.min(wanted, from.remaining());
    to.put(from.slice(from.position(), count));
    from.position(from.position() + count);
  }

  private int pieceBytes() throws ChecksumException {
    if (piece == EncryptedChunkFormat.pieces(whole.capacity())) {
      throw new ChecksumException("an encrypted chunk has bytes after its last piece");
    }
    return Math.min(whole.remaining(), EncryptedChunkFormat.PIECE_BYTES)
        + EncryptedChunkFormat.TAG_BYTES;
  }

  private void readHeader() throws IOException {
    header.flip();
    int magic = header.getInt();
    int version = header.getInt();
    byte[] itsSalt = new byte[EncryptedChunkFormat.SALT_BYTES];
    header.get(itsSalt);
    number = header.getLong();
    long check = header.getLong();
    long bytes = header.getLong();
    if (magic != EncryptedChunkFormat.MAGIC || version != EncryptedChunkFormat.VERSION) {
      throw new ChecksumException(
          "not an encrypted chunk of version %d: magic %x, version %d"
              .formatted(EncryptedChunkFormat.VERSION, magic, version));
    }
    useKey(itsSalt, check);
    if (bytes != whole.capacity()) {
      throw new ChecksumException(
          "an encrypted chunk of %d bytes instead of %d bytes".formatted(bytes, whole.capacity()));
    }
  }

  private void useKey(byte[] itsSalt, long check) throws IOException {
    if (secret.isEmpty()) {
      throw new IOException(
          "the chunk is encrypted, and this executor has no key: spark.io.encryption.enabled is"
              + " not set here");
    }
    if (!Arrays.equals(salt, itsSalt)) {
      key = secret.get().derive(itsSalt);
      salt = itsSalt;
    }
    if (key.check() != check) {
      throw new IOException(
          "the chunk was encrypted with another key than this executor has, or its header is"
              + " damaged: all executors of an application have Spark's key for"
              + " spark.io.encryption.enabled");
    }
  }

  private void decryptPiece(ByteBuffer encrypted) throws IOException {
    try {
      cipher = cipher == null ? Cipher.getInstance(EncryptedChunkFormat.CIPHER) : cipher;
      cipher.init(Cipher.DECRYPT_MODE, key.key(), EncryptedChunkFormat.nonce(number, piece));
      cipher.updateAAD(headerBytes);
      cipher.updateAAD(name);
      cipher.doFinal(encrypted, whole);
      piece++;
    } catch (AEADBadTagException e) {
      throw new ChecksumException(
          "piece %d of %d of the encrypted chunk is damaged or of another chunk"
              .formatted(piece, EncryptedChunkFormat.pieces(whole.capacity())));
    } catch (GeneralSecurityException e) {
      throw new IOException("an encrypted chunk cannot be decrypted: " + e, e);
    }
  }

  /**
   * Ends a chunk.
   *
   * @throws ChecksumException if bytes are missing
   */
  public void end() throws ChecksumException {
    if (header.position() < header.capacity()
        || piece < EncryptedChunkFormat.pieces(whole.capacity())) {
      throw new ChecksumException(
          "an encrypted chunk was truncated at byte %d of %d"
              .formatted(whole.position(), whole.capacity()));
    }
  }
}
