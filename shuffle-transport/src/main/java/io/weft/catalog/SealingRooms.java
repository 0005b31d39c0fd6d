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
 * Reserves disk for the ciphertext of chunks in private memory, so that every allocated chunk can
 * be encrypted. For one task thread.
 */
final class SealingRooms {
  private final SharedArena arena;
  private final Optional<ChunkSealer> sealer;
  private final IdentityHashMap<Extent, Extent> reservations = new IdentityHashMap<>();
  private long privateBytes;

  SealingRooms(SharedArena arena, Optional<ChunkSealer> sealer) {
    this.arena = arena;
    this.sealer = sealer;
  }

  /**
   * Reserves disk for a chunk in private memory. Does nothing for other chunks.
   *
   * @throws IOException if the disk budget is used up, or the chunk is too long for encryption
   */
  void prepare(Extent chunk, BlockKey key) throws IOException {
    if (chunk.kind() != MemoryKind.PRIVATE) {
      return;
    }
    if (chunk.length() > SealedFormat.MOST_BYTES) {
      throw new IOException(
          "%s: a chunk of %d bytes is too long for encryption; at most %d bytes are possible"
              .formatted(key, chunk.length(), SealedFormat.MOST_BYTES));
    }
    reservations.put(chunk, arena.allocate(SealedFormat.sealedBytes(chunk.length()), Use.DISK));
    privateBytes += chunk.length();
  }

  /**
   * Whether the task holds its share. It may exceed the share by one chunk. The rest is for
   * readers.
   */
  boolean isCrowded() {
    return !reservations.isEmpty() && privateBytes >= arena.transientShare();
  }

  /**
   * Encrypts a chunk to its reservation and frees the chunk. The caller then owns the reservation.
   */
  Extent seal(ChunkName name, Extent chunk, long usedBytes) {
    Extent reserved = reservations.get(chunk);
    ByteBuffer used = arena.view(chunk).slice(0, (int) usedBytes);
    sealer.orElseThrow().seal(name, used, arena.view(reserved));
    forget(chunk);
    arena.free(chunk);
    return arena.trim(reserved, SealedFormat.sealedBytes(usedBytes));
  }

  /** Frees a chunk's reservation, if it has one. */
  void giveUp(Extent chunk) {
    Extent reserved = forget(chunk);
    if (reserved != null) {
      arena.free(reserved);
    }
  }

  private Extent forget(Extent chunk) {
    Extent reserved = reservations.remove(chunk);
    privateBytes -= reserved == null ? 0 : chunk.length();
    return reserved;
  }
}
