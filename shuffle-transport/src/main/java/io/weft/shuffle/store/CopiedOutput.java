package io.weft.shuffle.store;

import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.shuffle.store.ChunkEncryptor.EncryptedChunkFormat;
import io.weft.shuffle.store.CopyStore.CopyInput;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Optional;

/**
 * A copy of a map output in a {@link CopyStore}. All numbers are little-endian.
 *
 * <pre>
 *   0               4               8               12
 *  +---------------+---------------+---------------+
 *  | magic "WFTC"  | version       | index bytes I |
 *  +---------------+---------------+---------------+
 *  | index, as {@link MapOutputFormat} writes it   |  I
 *  +-----------------------------------------------+
 *  | chunks 0..C-1, back to back                   |
 *  +-----------------------------------------------+
 * </pre>
 *
 * The index has a checksum of itself and of each chunk that is not encrypted. Its segments and
 * offsets are 0. With disk encryption all chunks are encrypted. For one thread.
 */
public final class CopiedOutput implements AutoCloseable {
  private static final int HEAD_BYTES = 12;
  private static final int VERSION = 1;
  private static final int MAGIC = 0x43544657;
  private static final int BUFFER_BYTES = 256 << 10;

  /** Bytes of the first read: all of a small copy, and the index of most others. */
  private static final int FIRST_BYTES = 32 << 10;

  private final CopyInput file;
  private final Head head;
  private final MapOutput index;

  /** Bytes of the file from {@link #bufferStart} on. */
  private byte[] buffer;

  private long bufferStart;
  private int buffered;

  /** Where the chunks end that will be read, as a position in the file. */
  private long end;

  /** The position of the next chunk in order, and its number. */
  private long position;

  private int next;

  private CopiedOutput(CopyInput file, Head head, byte[] first, int read) {
    this.file = file;
    this.head = head;
    this.index = head.index;
    this.position = head.chunksAt;
    this.buffer = first;
    this.buffered = read;
  }

  /**
   * What a copy has before its chunks. Immutable, as the copy is.
   *
   * @param chunksAt position of the first chunk in the file
   */
  public record Head(MapOutput index, int chunksAt) {}

  /**
   * Writes the copy of an output. Reads all of its bytes, those in memory twice. The caller closes
   * the stream.
   *
   * @param encryptor encrypts chunks that are not encrypted yet; empty to write them as they are
   */
  public static void write(OwnedOutput output, Optional<ChunkEncryptor> encryptor, OutputStream out)
      throws IOException {
    MapOutput index = indexOfCopy(output, encryptor.isPresent());
    ByteBuffer encoded = MapOutputFormat.encode(index);
    ByteBuffer head = ByteBuffer.allocate(HEAD_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    out.write(head.putInt(MAGIC).putInt(VERSION).putInt(encoded.remaining()).array());
    byte[] buffer = new byte[BUFFER_BYTES];
    write(encoded, buffer, out);
    int partition = 0;
    for (int chunk = 0; chunk < index.chunks(); chunk++) {
      while (chunk >= index.firstChunk(partition + 1)) {
        partition++;
      }
      ByteBuffer bytes = output.view(chunk);
      if (index.isEncrypted(chunk) && !output.index().isEncrypted(chunk)) {
        encryptor
            .orElseThrow()
            .encrypt(index.name(partition, chunk), bytes, piece -> write(piece, buffer, out));
      } else {
        write(bytes, buffer, out);
      }
    }
  }

  private static void write(ByteBuffer bytes, byte[] buffer, OutputStream out) throws IOException {
    while (bytes.hasRemaining()) {
      int count = Math.min(buffer.length, bytes.remaining());
      bytes.get(buffer, 0, count);
      out.write(buffer, 0, count);
    }
  }

  /** Encrypted chunks have authentication tags instead of checksums. */
  private static MapOutput indexOfCopy(OwnedOutput output, boolean encrypts) throws IOException {
    MapOutput index = output.index();
    int chunks = index.chunks();
    int[] firstChunk = new int[index.partitions() + 1];
    for (int partition = 0; partition <= index.partitions(); partition++) {
      firstChunk[partition] = index.firstChunk(partition);
    }
    int[] rows = new int[chunks];
    int[] checksum = new int[chunks];
    long[] length = new long[chunks];
    for (int chunk = 0; chunk < chunks; chunk++) {
      boolean encrypted = encrypts || index.isEncrypted(chunk);
      if (encrypted && index.length(chunk) > EncryptedChunkFormat.MAX_BYTES) {
        throw new IOException(
            "a chunk of %d bytes of %s is too large to be encrypted"
                .formatted(index.length(chunk), index.key()));
      }
      rows[chunk] = index.rows(chunk);
      checksum[chunk] = encrypted ? Checksum.NONE : output.checksum(chunk);
      length[chunk] = index.length(chunk) | (encrypted ? MapOutput.ENCRYPTED : 0);
    }
    return new MapOutput(
        index.key(),
        index.segmentBytes(),
        firstChunk,
        new int[chunks],
        rows,
        checksum,
        new long[chunks],
        length);
  }

  /**
   * Opens the copy of an output and reads its index. The caller closes it.
   *
   * @param writer id of the executor that wrote it
   * @throws IOException if there is no copy, or its index is damaged
   */
  public static CopiedOutput open(CopyStore store, BlockKey key, String writer) throws IOException {
    CopyInput file = store.open(key, writer);
    boolean opened = false;
    try {
      byte[] first = new byte[FIRST_BYTES];
      int read = file.read(0, first, 0, HEAD_BYTES, FIRST_BYTES);
      ByteBuffer head = ByteBuffer.wrap(first).order(ByteOrder.LITTLE_ENDIAN);
      int chunksAt = HEAD_BYTES + indexBytes(head, key);
      if (chunksAt > read) {
        first = Arrays.copyOf(first, chunksAt);
        read += file.read(read, first, read, chunksAt - read, chunksAt - read);
      }
      ByteBuffer encoded = ByteBuffer.wrap(first, HEAD_BYTES, chunksAt - HEAD_BYTES).slice();
      MapOutput index = MapOutputFormat.decode(encoded, key);
      CopiedOutput copy = new CopiedOutput(file, new Head(index, chunksAt), first, read);
      opened = true;
      return copy;
    } finally {
      if (!opened) {
        file.close();
      }
    }
  }

  /**
   * Opens the copy of an output that was opened before, without a read of its index. The caller
   * closes it.
   *
   * @param writer id of the executor that wrote it
   * @param head of this copy
   * @throws IOException if there is no copy
   */
  public static CopiedOutput open(CopyStore store, BlockKey key, String writer, Head head)
      throws IOException {
    return new CopiedOutput(store.open(key, writer), head, new byte[0], 0);
  }

  private static int indexBytes(ByteBuffer head, BlockKey key) throws IOException {
    int magic = head.getInt();
    int version = head.getInt();
    int indexBytes = head.getInt();
    if (magic != MAGIC || version != VERSION) {
      throw new IOException(
          "not a copy of version %d of %s: magic %x, version %d"
              .formatted(VERSION, key, magic, version));
    }
    if (indexBytes < 1 || indexBytes > MapOutputFormat.MAX_BYTES) {
      throw new IOException("a copy of " + key + " with an index of " + indexBytes + " bytes");
    }
    return indexBytes;
  }

  /** The index of the copy. */
  public MapOutput index() {
    return index;
  }

  /** The index of the copy, to open it again. */
  public Head head() {
    return head;
  }

  /**
   * Moves to a range of chunks, which must not be before those that were read. They are next to
   * each other in the file, so that one read may bring many.
   *
   * @param last one past the last chunk
   */
  public void select(int first, int last) {
    skipTo(first);
    end = position;
    for (int chunk = first; chunk < last; chunk++) {
      end += index.storedBytes(chunk);
    }
  }

  private void skipTo(int chunk) {
    for (; next < chunk; next++) {
      position += index.storedBytes(next);
    }
  }

  /**
   * Reads, decrypts and verifies a chunk of the selected range. Chunks must be read in ascending
   * order; some may be left out.
   *
   * @param partition of the chunk
   * @param into buffer of exactly the plain size, filled from 0 to its capacity
   * @throws ChecksumException if the bytes are damaged
   */
  public void read(int partition, int chunk, ByteBuffer into, ChunkDecryptor decryptor)
      throws IOException {
    skipTo(chunk);
    boolean encrypted = index.isEncrypted(chunk);
    if (encrypted) {
      decryptor.begin(index.name(partition, chunk), into);
    }
    ByteBuffer plain = into.duplicate().clear();
    long endOfChunk = position + index.storedBytes(chunk);
    for (long at = position; at < endOfChunk; ) {
      int offset = buffered(at);
      int count = (int) Math.min(buffered - offset, endOfChunk - at);
      at += count;
      if (encrypted) {
        decryptor.accept(ByteBuffer.wrap(buffer, offset, count));
      } else {
        plain.put(buffer, offset, count);
      }
    }
    if (encrypted) {
      decryptor.end();
    } else {
      verify(chunk, plain.flip());
    }
  }

  /** Returns where a byte of the file is in the buffer; reads at least that byte if it is not. */
  private int buffered(long at) throws IOException {
    if (at - bufferStart >= buffered) {
      int most = (int) Math.min(BUFFER_BYTES, end - at);
      if (buffer.length < most) {
        buffer = new byte[most];
      }
      buffered = file.read(at, buffer, 0, most, most);
      bufferStart = at;
    }
    return (int) (at - bufferStart);
  }

  private void verify(int chunk, ByteBuffer bytes) throws ChecksumException {
    int promised = index.checksum(chunk);
    int found = promised == Checksum.NONE ? promised : Checksum.of(bytes);
    if (found != promised) {
      throw new ChecksumException(
          "chunk " + chunk + " of the copy of " + index.key(), promised, found);
    }
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
