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
 * The sealed chunks that a reader looks at, opened into memory of their own: the last one and the
 * one before it, or all of them. Owns that memory. For the reader's thread.
 */
final class OpenedChunks implements AutoCloseable {
  private final SharedArena arena;
  private final ChunkOpener opener;

  /** Those that stay until the end. */
  private final ArrayDeque<Extent> kept = new ArrayDeque<>();

  private Extent current;
  private Extent previous;
  private boolean retained;

  /** Starts with none. */
  OpenedChunks(SharedArena arena, Optional<SealingKey> key) {
    this.arena = arena;
    this.opener = new ChunkOpener(key);
  }

  /** Keeps all of them until the end. */
  void retainAll() {
    retained = true;
  }

  /** The chunk before the last one is not read any more. */
  void moveOn() {
    if (previous != null) {
      arena.free(previous);
    }
    previous = current;
    current = null;
  }

  /**
   * Opens a chunk.
   *
   * @param name of the chunk
   * @param sealed the chunk as it lies there
   * @param bytes of the chunk
   * @return its address, a multiple of 64
   * @throws IOException if it cannot be opened, as it is not what was written or the key is wrong;
   *     an {@link InterruptedIOException} if the thread was interrupted waiting for memory
   * @throws UncheckedIOException if there is no memory for it, which is not its owner's fault
   */
  long open(ChunkName name, ByteBuffer sealed, long bytes) throws IOException {
    Extent extent = allocate(bytes);
    boolean open = false;
    try {
      opener.open(name, sealed, arena.view(extent).slice(0, (int) bytes));
      open = true;
    } finally {
      if (!open) {
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

  /** What stays until the end is not taken from those who need memory for moments. */
  private Extent allocate(long bytes) throws InterruptedIOException {
    try {
      return arena.allocate(bytes, retained ? Use.RETAINED : Use.TRANSIENT);
    } catch (ArenaFullException e) {
      throw new UncheckedIOException(
          "no memory to open an encrypted chunk into: " + e.getMessage(), e);
    }
  }

  /** Gives all memory back. Can be repeated. */
  @Override
  public void close() {
    moveOn();
    moveOn();
    kept.forEach(arena::free);
    kept.clear();
  }
}
