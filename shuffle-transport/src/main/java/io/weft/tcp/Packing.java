package io.weft.tcp;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdException;
import io.weft.memory.ArenaFullException;
import io.weft.memory.Extent;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.wire.Compression;
import java.io.InterruptedIOException;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;

/**
 * Packs chunks for their way, each into an extent of its own that belongs to the caller. What does
 * not get smaller by a tenth is sent as it is, and where that is so again and again only a sample
 * is tried from time to time. Thread-safe.
 */
final class Packing {
  private static final LZ4Compressor LZ4 = LZ4Factory.fastestInstance().fastCompressor();
  private static final int ZSTD_LEVEL = 1;

  /** A chunk has to shrink to nine tenths, or unpacking costs more than it brings. */
  private static final double PAYS = 0.9;

  /** Of a longer chunk this much is tried first. */
  private static final int SAMPLE_BYTES = 64 << 10;

  /** Below this a chunk is not worth the call. */
  private static final int LEAST_BYTES = 128;

  private static final int MOST_SHUFFLES = 256;

  private final SharedArena arena;

  /** By shuffle, as its blocks are alike; the ones asked for last. */
  private final Map<Integer, Payoff> payoffs =
      Collections.synchronizedMap(
          new LinkedHashMap<>(16, 0.75f, true) {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<Integer, Payoff> eldest) {
              return size() > MOST_SHUFFLES;
            }
          });

  /** Packs into memory of an arena. */
  Packing(SharedArena arena) {
    this.arena = arena;
  }

  /** Whether packing has paid lately: after every failure twice as many chunks go untried. */
  private static final class Payoff {
    private static final int MOST_SKIPPED = 1024;

    private int toSkip;
    private int penalty = 1;

    synchronized boolean isWorthTrying() {
      return toSkip == 0 || --toSkip == 0;
    }

    synchronized void tried(boolean paid) {
      penalty = paid ? 1 : Math.min(2 * penalty, MOST_SKIPPED);
      toSkip = paid ? 0 : penalty;
    }
  }

  /**
   * Packs a chunk.
   *
   * @param compression not {@link Compression#NONE}
   * @param bytes a direct buffer, from 0 to its limit
   * @return exactly as long as the packed bytes but for rounding, with their number; null if the
   *     chunk is to be sent as it is
   */
  Packed pack(Compression compression, int shuffleId, ByteBuffer bytes) {
    if (bytes.limit() < LEAST_BYTES) {
      return null;
    }
    Payoff payoff = payoffs.computeIfAbsent(shuffleId, id -> new Payoff());
    if (!payoff.isWorthTrying()) {
      return null;
    }
    Packed packed = samplePays(compression, bytes) ? packWhole(compression, bytes) : null;
    payoff.tried(packed != null);
    return packed;
  }

  /** A packed chunk. */
  record Packed(Extent extent, int bytes) {}

  private boolean samplePays(Compression compression, ByteBuffer bytes) {
    if (bytes.limit() <= 4 * SAMPLE_BYTES) {
      return true;
    }
    ByteBuffer sample = bytes.slice(bytes.limit() / 2, SAMPLE_BYTES);
    Packed packed = packWhole(compression, sample);
    if (packed != null) {
      arena.free(packed.extent());
    }
    return packed != null;
  }

  private Packed packWhole(Compression compression, ByteBuffer bytes) {
    int most = (int) (bytes.limit() * PAYS);
    Extent extent = allocate(most);
    if (extent == null) {
      return null;
    }
    int count = 0;
    try {
      ByteBuffer target = arena.view(extent);
      count = compression == Compression.LZ4 ? lz4(bytes, target, most) : zstd(bytes, target, most);
    } finally {
      if (count == 0) {
        arena.free(extent);
      }
    }
    return count == 0 ? null : new Packed(arena.trim(extent, count), count);
  }

  /** Null where there is no shared memory: disk would be slower than sending more bytes. */
  private Extent allocate(int bytes) {
    try {
      return arena.allocate(bytes, Use.SHARED_ONLY);
    } catch (ArenaFullException | InterruptedIOException e) {
      return null;
    }
  }

  private static int lz4(ByteBuffer bytes, ByteBuffer target, int most) {
    try {
      return LZ4.compress(bytes, 0, bytes.limit(), target, 0, most);
    } catch (LZ4Exception e) {
      return 0;
    }
  }

  private static int zstd(ByteBuffer bytes, ByteBuffer target, int most) {
    try {
      return (int)
          Zstd.compressDirectByteBuffer(target, 0, most, bytes, 0, bytes.limit(), ZSTD_LEVEL);
    } catch (ZstdException e) {
      return 0;
    }
  }

  /** The bytes of a packed chunk. */
  ByteBuffer view(Packed packed) {
    return arena.view(packed.extent()).slice(0, packed.bytes()).asReadOnlyBuffer();
  }

  /** Gives a packed chunk's memory back. */
  void free(Packed packed) {
    arena.free(packed.extent());
  }
}
