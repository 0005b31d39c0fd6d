package io.weft.transfer;

import io.weft.encryption.ChunkName;
import io.weft.encryption.ChunkOpener;
import io.weft.encryption.SealingKey;
import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Optional;

/**
 * Decrypts chunks into memory and owns that memory. Keeps the last two chunks, or all of them. For
 * the reader's thread.
 */
final class OpenedChunks implements AutoCloseable {
  private final SharedArena arena;
  private final ChunkOpener opener;

  /** The chunks that stay until the end. */
  private final ArrayDeque<Extent> kept = new ArrayDeque<>();

  private Extent current;
  private Extent previous;
  private boolean retained;

  /** Creates an empty set of chunks. */
  OpenedChunks(SharedArena arena, Optional<SealingKey> key) {
    this.arena = arena;
    this.opener = new ChunkOpener(key);
  }

  /** Keeps all chunks until {@link #close()}. */
  void retainAll() {
    retained = true;
  }

  /** Frees the chunk before the last one. */
  void moveOn() {
    if (previous != null) {
      arena.free(previous);
    }
    previous = current;
    current = null;
  }

  /**
   * Decrypts a chunk.
   *
   * @param name of the chunk
   * @param encrypted the encrypted bytes
   * @param bytes of the decrypted chunk
   * @return its address, a multiple of 64
   * @throws IOException if the chunk is damaged or the key is wrong; an {@link
   *     InterruptedIOException} if the thread is interrupted while it waits for memory
   * @throws UncheckedIOException if this executor has no memory for it
   */
  long open(ChunkName name, ByteBuffer encrypted, long bytes) throws IOException {
    Extent extent = allocate(bytes);
    boolean done = false;
    try {
      opener.open(name, encrypted, arena.view(extent).slice(0, (int) bytes));
      done = true;
    } finally {
      if (!done) {
        arena.free(extent);
      }
    }
    if (retained) {
      kept.add(extent);
    } else {
      current = extent;
    }
    return extent.address();
  }

  /** Retained chunks do not use the memory that is reserved for transient use. */
  private Extent allocate(long bytes) throws InterruptedIOException {
    try {
      return arena.allocate(bytes, retained ? Use.RETAINED : Use.TRANSIENT);
    } catch (ArenaFullException e) {
      throw new UncheckedIOException("no memory to decrypt a chunk: " + e.getMessage(), e);
    }
  }

  /** Frees all memory. Can be repeated. */
  @Override
  public void close() {
    moveOn();
    moveOn();
    kept.forEach(arena::free);
    kept.clear();
  }
}
