package io.weft.shuffle.fetch;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.weft.memory.Memory;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.store.Checksum.ChecksumException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses the compression that a request asks for. With {@link Compression.Rule#AUTO} that is the
 * codec with the least time for a byte, from the measured rate of the network and a trial of each
 * codec on a sample of the shuffle's own bytes. Nothing is compressed until both are known, so a
 * fast network costs no trial. Thread-safe.
 */
final class CompressionChoice {
  private static final Logger LOG = LoggerFactory.getLogger(CompressionChoice.class);

  /** A codec must save a tenth of the time. Otherwise its processor time is not worth it. */
  private static final double WORTHWHILE_RATIO = 0.9;

  /**
   * A network that needs less time for a byte than this needs no trials, because a codec needs
   * more: LZ4 and Zstandard compress at most about 1 GB/s of data that shrinks.
   */
  private static final double FAST_NANOS_PER_BYTE = 1.0;

  private static final List<Compression> CODECS = List.of(Compression.LZ4, Compression.ZSTD);

  private final Compression.Rule rule;
  private final LinkRate link = new LinkRate();

  /** By shuffle, because the blocks of a shuffle are alike. */
  private final Map<Integer, List<Trial>> trials = new ConcurrentHashMap<>();

  private final Set<Compression> logged = ConcurrentHashMap.newKeySet();

  CompressionChoice(Compression.Rule rule) {
    this.rule = rule;
  }

  /** The rate at which bytes arrive, which the requests measure. */
  LinkRate link() {
    return link;
  }

  /** The compression for a request. */
  Compression of(int shuffleId) {
    return switch (rule) {
      case NONE -> Compression.NONE;
      case LZ4 -> Compression.LZ4;
      case ZSTD -> Compression.ZSTD;
      case AUTO -> fastest(shuffleId);
    };
  }

  private Compression fastest(int shuffleId) {
    double plain = link.nanosPerByte();
    double least = plain * WORTHWHILE_RATIO;
    Trial chosen = null;
    for (Trial trial : trials.getOrDefault(shuffleId, List.of())) {
      double nanos = trial.nanosPerByte(plain);
      if (nanos < least) {
        least = nanos;
        chosen = trial;
      }
    }
    if (chosen == null) {
      return Compression.NONE;
    }
    if (logged.add(chosen.codec())) {
      LOG.info(
          "Blocks of shuffle {}, and of others where it pays, come compressed by {}: the network"
              + " brings {} MB/s, and {}",
          shuffleId,
          chosen.codec(),
          Math.round(1000 / plain),
          chosen);
    }
    return chosen.codec();
  }

  /**
   * Tries the codecs on a chunk, if it is the first of its shuffle, and the network is slow.
   *
   * @param address of the uncompressed chunk
   */
  void arrived(int shuffleId, long address, long bytes) {
    if (rule == Compression.Rule.AUTO
        && bytes >= Sample.MIN_BYTES
        && link.nanosPerByte() > FAST_NANOS_PER_BYTE
        && !trials.containsKey(shuffleId)) {
      trials.computeIfAbsent(shuffleId, id -> tryAll(address, bytes));
    }
  }

  private static List<Trial> tryAll(long address, long bytes) {
    try (Sample sample = new Sample(address, bytes)) {
      return CODECS.stream().map(sample::compressedBy).toList();
    }
  }

  /** Forgets the trials of a shuffle. */
  void removeShuffle(int shuffleId) {
    trials.remove(shuffleId);
  }

  /**
   * What a codec did to a sample.
   *
   * @param ratio compressed bytes for each byte
   * @param costNanos to compress and to decompress, for each uncompressed byte
   */
  record Trial(Compression codec, double ratio, double costNanos) {
    /** The time for an uncompressed byte over a network that needs this time for a sent byte. */
    double nanosPerByte(double network) {
      return ratio * network + costNanos;
    }

    @Override
    public String toString() {
      return "%.0f %% of the bytes are left after %.2f ns a byte".formatted(100 * ratio, costNanos);
    }
  }

  /** Pieces of a chunk, from all of it, because each column has its own place. */
  private static final class Sample implements AutoCloseable {
    static final int MIN_BYTES = 16 << 10;
    private static final int MAX_BYTES = 64 << 10;
    private static final int PIECES = 8;

    /** The first round also loads the native code. */
    private static final int ROUNDS = 3;

    private final int bytes;
    private final ByteBuf memory;
    private final ByteBuffer plain;
    private final ByteBuffer compressed;
    private final ByteBuffer again;

    Sample(long address, long chunkBytes) {
      bytes = (int) Math.min(chunkBytes, MAX_BYTES);
      memory = PooledByteBufAllocator.DEFAULT.directBuffer(3 * bytes);
      plain = memory.nioBuffer(0, bytes);
      compressed = memory.nioBuffer(bytes, bytes);
      again = memory.nioBuffer(2 * bytes, bytes).slice();
      int piece = bytes / PIECES;
      long apart = chunkBytes / PIECES;
      for (int i = 0; i < PIECES; i++) {
        Memory.copy(address + i * apart, Memory.addressOf(plain) + (long) i * piece, piece);
      }
      plain.limit(PIECES * piece);
    }

    Trial compressedBy(Compression codec) {
      long nanos = Long.MAX_VALUE;
      int left = 0;
      for (int round = 0; round < ROUNDS; round++) {
        long started = System.nanoTime();
        left = codec.compress(plain, compressed.clear(), bytes);
        if (left == 0) {
          return new Trial(codec, 1, 0);
        }
        decompress(codec, left);
        nanos = Math.min(nanos, System.nanoTime() - started);
      }
      return new Trial(codec, (double) left / plain.limit(), (double) nanos / plain.limit());
    }

    private void decompress(Compression codec, int left) {
      try {
        codec.decompressWhole(compressed.limit(left).position(0), again.slice(0, plain.limit()));
      } catch (ChecksumException e) {
        throw new IllegalStateException(codec + " does not restore its own output", e);
      }
    }

    @Override
    public void close() {
      memory.release();
    }
  }

  /**
   * The rate at which the bytes of all streams of an executor arrive, while at least one of them
   * does. Later bytes count more. Thread-safe.
   */
  static final class LinkRate {
    /** Fewer bytes say nothing, because they come from buffers of the kernel. */
    private static final long MIN_BYTES = 4 << 20;

    private static final long MAX_BYTES = 128 << 20;

    @GuardedBy("this")
    private int streams;

    @GuardedBy("this")
    private long since;

    @GuardedBy("this")
    private long bytes;

    @GuardedBy("this")
    private long nanos;

    private volatile double nanosPerByte;

    StreamRate newStream() {
      return new StreamRate(this);
    }

    /** A stream has begun: its first bytes have arrived, which do not count. */
    synchronized void begin(long now) {
      measure(now);
      streams++;
    }

    /**
     * A stream has ended.
     *
     * @param sent its bytes on the network since it has begun
     */
    synchronized void end(long sent, long now) {
      measure(now);
      streams--;
      bytes += sent;
      if (bytes >= MIN_BYTES) {
        nanosPerByte = (double) nanos / bytes;
      }
      if (bytes >= MAX_BYTES) {
        bytes /= 2;
        nanos /= 2;
      }
    }

    @GuardedBy("this")
    private void measure(long now) {
      if (streams > 0) {
        nanos += now - since;
      }
      since = now;
    }

    /** The nanoseconds for a byte, as sent; 0 as long as it is unknown. */
    double nanosPerByte() {
      return nanosPerByte;
    }

    /** Counts the bytes of one stream. Guarded by its request. */
    static final class StreamRate {
      private final LinkRate link;
      private boolean begun;
      private boolean ended;
      private long bytes;

      StreamRate(LinkRate link) {
        this.link = link;
      }

      void arrived(int count, long now) {
        if (begun) {
          bytes += count;
        } else if (!ended) {
          begun = true;
          link.begin(now);
        }
      }

      /** Can be repeated. */
      void end() {
        if (begun && !ended) {
          link.end(bytes, System.nanoTime());
        }
        ended = true;
      }
    }
  }
}
