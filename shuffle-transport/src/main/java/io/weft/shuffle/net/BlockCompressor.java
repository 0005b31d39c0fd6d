package io.weft.shuffle.net;

import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Compresses chunks for the network, each into an extent of its own that belongs to the caller. A
 * chunk that does not shrink by a tenth is sent uncompressed. Each such chunk doubles the number of
 * chunks of its shuffle that are then skipped. Thread-safe.
 */
final class BlockCompressor {
  /** A chunk must shrink to nine tenths. Otherwise decompressing costs more than it saves. */
  private static final double WORTHWHILE_RATIO = 0.9;

  /** The sample that is tried first, of a chunk of more than four times this size. */
  private static final int SAMPLE_BYTES = 64 << 10;

  /** A shorter chunk is not worth the call. */
  private static final int MIN_BYTES = 128;

  private static final int MAX_SHUFFLES = 256;

  private final SharedArena arena;

  /** By shuffle, because the blocks of a shuffle are alike. Keeps the most recently used. */
  private final Map<Integer, Payoff> payoffs =
      Collections.synchronizedMap(
          new LinkedHashMap<>(16, 0.75f, true) {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<Integer, Payoff> eldest) {
              return size() > MAX_SHUFFLES;
            }
          });

  /** Compresses into memory of an arena. */
  BlockCompressor(SharedArena arena) {
    this.arena = arena;
  }

  /** Whether compression has paid lately. Each failure doubles the number of chunks to skip. */
  private static final class Payoff {
    private static final int MAX_SKIPPED = 1024;

    private int toSkip;
    private int penalty = 1;

    synchronized boolean isWorthTrying() {
      return toSkip == 0 || --toSkip == 0;
    }

    synchronized void tried(boolean paid) {
      penalty = paid ? 1 : Math.min(2 * penalty, MAX_SKIPPED);
      toSkip = paid ? 0 : penalty;
    }
  }

  /**
   * Compresses a chunk.
   *
   * @param compression not {@link Compression#NONE}
   * @param bytes a direct buffer, from 0 to its limit
   * @return the compressed chunk, in an extent of its size but for rounding; null if the chunk is
   *     to be sent uncompressed
   */
  Compressed compress(Compression compression, int shuffleId, ByteBuffer bytes) {
    if (bytes.limit() < MIN_BYTES) {
      return null;
    }
    Payoff payoff = payoffs.computeIfAbsent(shuffleId, id -> new Payoff());
    if (!payoff.isWorthTrying()) {
      return null;
    }
    Compressed compressed =
        sampleShrinks(compression, bytes) ? compressWhole(compression, bytes) : null;
    payoff.tried(compressed != null);
    return compressed;
  }

  /** A compressed chunk. */
  record Compressed(Extent extent, int bytes) {}

  private boolean sampleShrinks(Compression compression, ByteBuffer bytes) {
    if (bytes.limit() <= 4 * SAMPLE_BYTES) {
      return true;
    }
    ByteBuffer sample = bytes.slice(bytes.limit() / 2, SAMPLE_BYTES);
    Compressed compressed = compressWhole(compression, sample);
    if (compressed != null) {
      arena.free(compressed.extent());
    }
    return compressed != null;
  }

  private Compressed compressWhole(Compression compression, ByteBuffer bytes) {
    int limit = (int) (bytes.limit() * WORTHWHILE_RATIO);
    Extent extent = allocate(limit);
    if (extent == null) {
      return null;
    }
    int count = 0;
    try {
      count = compression.compress(bytes, arena.view(extent), limit);
    } finally {
      if (count == 0) {
        arena.free(extent);
      }
    }
    return count == 0 ? null : new Compressed(arena.trim(extent, count), count);
  }

  /** Null where there is no shared memory: disk would be slower than sending more bytes. */
  private Extent allocate(int bytes) {
    try {
      return arena.tryAllocate(bytes, Use.SHARED_ONLY);
    } catch (ArenaFullException | InterruptedIOException e) {
      return null;
    }
  }

  /** The bytes of a compressed chunk, read-only. */
  ByteBuffer view(Compressed compressed) {
    return arena.view(compressed.extent()).slice(0, compressed.bytes()).asReadOnlyBuffer();
  }

  /** Gives a compressed chunk's memory back. */
  void free(Compressed compressed) {
    arena.free(compressed.extent());
  }
}
