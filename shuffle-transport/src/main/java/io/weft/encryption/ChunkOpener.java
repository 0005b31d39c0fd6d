package io.weft.encryption;

import io.weft.integrity.ChecksumException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Optional;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;

/**
 * Opens sealed chunks, one after the other, each in as many parts as it comes in. Keeps one piece
 * of 64 KiB of what has come at most, and nothing of what is opened. For one thread at a time.
 */
public final class ChunkOpener {
  private final Optional<SealingKey> secret;
  private final byte[] headerBytes = new byte[SealedFormat.HEADER_BYTES];
  private final ByteBuffer header = ByteBuffer.wrap(headerBytes).order(ByteOrder.LITTLE_ENDIAN);
  private byte[] salt;
  private SealingKey.Derived key;
  private Cipher cipher;

  /** A piece that came in several parts; null before the first one. */
  private ByteBuffer gathered;

  private ByteBuffer whole;
  private byte[] name;
  private long number;
  private int piece;

  /** Opens what was sealed with this key; without one, nothing. */
  public ChunkOpener(Optional<SealingKey> secret) {
    this.secret = secret;
  }

  /**
   * Opens a chunk that is there as a whole.
   *
   * @param as the name of the chunk that is wanted
   * @param sealed from its position to its limit, which becomes its position
   * @param chunk as long as the chunk, filled from 0 to its capacity
   * @throws ChecksumException if that is not what was sealed
   * @throws IOException if it was sealed with another key, or there is none
   */
  public void open(ChunkName as, ByteBuffer sealed, ByteBuffer chunk) throws IOException {
    begin(as, chunk);
    accept(sealed);
    end();
  }

  /**
   * Begins with a chunk.
   *
   * @param as as of {@link #open}
   * @param chunk as of {@link #open}
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
   * Takes the next part of a chunk, all of it.
   *
   * @throws IOException as {@link #open} does
   */
  public void accept(ByteBuffer sealed) throws IOException {
    if (header.hasRemaining()) {
      fill(header, sealed, header.remaining());
      if (!header.hasRemaining()) {
        readHeader();
      }
    }
    while (sealed.hasRemaining() && !header.hasRemaining()) {
      int wanted = pieceBytes();
      boolean started = gathered != null && gathered.position() > 0;
      if (!started && sealed.remaining() >= wanted) {
        ByteBuffer direct = sealed.slice(sealed.position(), wanted);
        sealed.position(sealed.position() + wanted);
        openPiece(direct);
      } else {
        gather(sealed, wanted);
      }
    }
  }

  private void gather(ByteBuffer sealed, int wanted) throws IOException {
    if (gathered == null) {
      gathered = ByteBuffer.allocate(SealedFormat.SEALED_PIECE_BYTES);
    }
    fill(gathered, sealed, wanted - gathered.position());
    if (gathered.position() == wanted) {
      openPiece(gathered.flip());
      gathered.clear();
    }
  }

  private static void fill(ByteBuffer to, ByteBuffer from, int wanted) {
    int count = Math.min(wanted, from.remaining());
    to.put(from.slice(from.position(), count));
    from.position(from.position() + count);
  }

  private int pieceBytes() throws ChecksumException {
    if (piece == SealedFormat.pieces(whole.capacity())) {
      throw new ChecksumException("an encrypted chunk has bytes behind its last piece");
    }
    return Math.min(whole.remaining(), SealedFormat.PIECE_BYTES) + SealedFormat.TAG_BYTES;
  }

  private void readHeader() throws IOException {
    header.flip();
    int magic = header.getInt();
    int version = header.getInt();
    byte[] itsSalt = new byte[SealedFormat.SALT_BYTES];
    header.get(itsSalt);
    number = header.getLong();
    long check = header.getLong();
    long bytes = header.getLong();
    if (magic != SealedFormat.MAGIC || version != SealedFormat.VERSION) {
      throw new ChecksumException(
          "no encrypted chunk of version %d: magic %x, version %d"
              .formatted(SealedFormat.VERSION, magic, version));
    }
    useKey(itsSalt, check);
    if (bytes != whole.capacity()) {
      throw new ChecksumException(
          "an encrypted chunk of %d bytes, where one of %d was expected"
              .formatted(bytes, whole.capacity()));
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

  private void openPiece(ByteBuffer sealed) throws IOException {
    try {
      cipher = cipher == null ? Cipher.getInstance(SealedFormat.CIPHER) : cipher;
      cipher.init(Cipher.DECRYPT_MODE, key.key(), SealedFormat.nonce(number, piece));
      cipher.updateAAD(headerBytes);
      cipher.updateAAD(name);
      cipher.doFinal(sealed, whole);
      piece++;
    } catch (AEADBadTagException e) {
      throw new ChecksumException(
          "piece %d of %d of the encrypted chunk is not what was written for this place"
              .formatted(piece, SealedFormat.pieces(whole.capacity())));
    } catch (GeneralSecurityException e) {
      throw new IOException("an encrypted chunk cannot be opened: " + e, e);
    }
  }

  /**
   * Ends a chunk.
   *
   * @throws ChecksumException if some of it is missing
   */
  public void end() throws ChecksumException {
    if (header.position() < header.capacity() || piece < SealedFormat.pieces(whole.capacity())) {
      throw new ChecksumException(
          "an encrypted chunk was cut short at byte %d of %d"
              .formatted(whole.position(), whole.capacity()));
    }
  }
}
