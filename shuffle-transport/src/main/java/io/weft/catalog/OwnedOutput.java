package io.weft.catalog;

import io.weft.integrity.Checksum;
import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.memory.SharedArena;
import java.nio.ByteBuffer;

/** A published map output of this executor, with the memory it owns. Thread-safe. */
public final class OwnedOutput {
  private final SharedArena arena;
  private final LocatedOutput located;
  private final Extent[] extents;

  /** Of chunks in memory, made when a peer first asks; threads that race make the same one. */
  private final int[] checksum;

  private final long bytes;
  private final long spilledBytes;

  OwnedOutput(SharedArena arena, MapOutput index, Extent[] extents) {
    this.arena = arena;
    this.extents = extents;
    this.checksum = new int[extents.length];
    long[] address = new long[extents.length];
    long sum = 0;
    long onDisk = 0;
    for (int chunk = 0; chunk < extents.length; chunk++) {
      address[chunk] = extents[chunk].address();
      sum += extents[chunk].length();
      onDisk += extents[chunk].kind() == MemoryKind.DISK ? extents[chunk].length() : 0;
    }
    this.located = new LocatedOutput(index, address);
    this.bytes = sum;
    this.spilledBytes = onDisk;
  }

  /** What the output consists of. */
  public MapOutput index() {
    return located.index();
  }

  /** The bytes of a chunk as they lie there, sealed if the index says so; read-only. */
  public ByteBuffer view(int chunk) {
    ByteBuffer whole = arena.view(extents[chunk]);
    return whole.slice(0, (int) index().storedBytes(chunk)).asReadOnlyBuffer();
  }

  /**
   * The checksum of a chunk's bytes as they lie there, made once: when the chunk was written to
   * disk, or now. Takes about as long as reading them.
   */
  public int checksum(int chunk) {
    int sum = index().checksum(chunk);
    if (sum != Checksum.NONE) {
      return sum;
    }
    if (checksum[chunk] == Checksum.NONE) {
      checksum[chunk] = Checksum.of(view(chunk));
    }
    return checksum[chunk];
  }

  LocatedOutput located() {
    return located;
  }

  /** Arena bytes that freeing gives back. */
  long bytes() {
    return bytes;
  }

  /** Those of {@link #bytes} that lie on disk, because shared memory was full. */
  long spilledBytes() {
    return spilledBytes;
  }

  /** Gives the memory back; once only. */
  void free() {
    for (Extent extent : extents) {
      arena.free(extent);
    }
  }
}
