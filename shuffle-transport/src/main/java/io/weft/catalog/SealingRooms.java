package io.weft.catalog;

import io.weft.encryption.ChunkName;
import io.weft.encryption.ChunkSealer;
import io.weft.encryption.SealedFormat;
import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.IdentityHashMap;
import java.util.Optional;

/**
 * The places on disk that are set aside for chunks in private memory, so that a chunk that was
 * allocated can be sealed. For one task thread.
 */
final class SealingRooms {
  private final SharedArena arena;
  private final Optional<ChunkSealer> sealer;
  private final IdentityHashMap<Extent, Extent> rooms = new IdentityHashMap<>();
  private long privateBytes;

  SealingRooms(SharedArena arena, Optional<ChunkSealer> sealer) {
    this.arena = arena;
    this.sealer = sealer;
  }

  /**
   * Sets disk aside if a chunk lies in private memory.
   *
   * @throws IOException if there is none left, or the chunk is too long to be sealed
   */
  void prepare(Extent chunk, BlockKey key) throws IOException {
    if (chunk.kind() != MemoryKind.PRIVATE) {
      return;
    }
    if (chunk.length() > SealedFormat.MOST_BYTES) {
      throw new IOException(
          "%s: a chunk of %d bytes is too long to be encrypted, which is possible up to %d"
              .formatted(key, chunk.length(), SealedFormat.MOST_BYTES));
    }
    rooms.put(chunk, arena.allocate(SealedFormat.sealedBytes(chunk.length()), Use.DISK));
    privateBytes += chunk.length();
  }

  /** Whether a task has its share. It takes that and one chunk; the other half is for readers. */
  boolean isCrowded() {
    return !rooms.isEmpty() && privateBytes >= arena.transientShare();
  }

  /** Seals a chunk into its room, which the caller owns from then on, and frees it. */
  Extent seal(ChunkName name, Extent chunk, long usedBytes) {
    Extent room = rooms.get(chunk);
    ByteBuffer used = arena.view(chunk).slice(0, (int) usedBytes);
    sealer.orElseThrow().seal(name, used, arena.view(room));
    forget(chunk);
    arena.free(chunk);
    return arena.trim(room, SealedFormat.sealedBytes(usedBytes));
  }

  /** Gives a chunk's room back, if it has one. */
  void giveUp(Extent chunk) {
    Extent room = forget(chunk);
    if (room != null) {
      arena.free(room);
    }
  }

  private Extent forget(Extent chunk) {
    Extent room = rooms.remove(chunk);
    privateBytes -= room == null ? 0 : chunk.length();
    return room;
  }
}
