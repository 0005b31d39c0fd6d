package io.weft.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.net.BlocksOpened;
import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.Compression;
import io.weft.shuffle.net.OpenBlocks;
import io.weft.shuffle.net.OpenBlocks.BlockRange;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.net.OpenBlocks.StreamId.DiscardStream;
import io.weft.shuffle.net.WireException;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.Checksum.ChecksumException;
import io.weft.shuffle.store.MapOutputFormat;
import io.weft.shuffle.store.MapOutputFormat.CorruptIndexException;
import io.weft.support.Noise;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * Feeds invalid input to all decoders of bytes from other processes: noise, and valid messages that
 * were truncated, changed or given wrong lengths, mostly with a correct checksum. Each input gives
 * a value or the one expected exception, and uses memory in proportion to its size.
 *
 * <p>{@code -Dweft.fuzz.minutes=10} runs for 10 minutes. A failure names its seed.
 */
class DecoderFuzzTest {
  @Property(tries = 20_000, shrinking = ShrinkingMode.OFF)
  void everyInputIsRefusedOrValid(@ForAll long seed) {
    Noise.round(seed, DecoderFuzzTest::round);
  }

  @Test
  @EnabledIfSystemProperty(named = Noise.MINUTES, matches = "\\d+")
  @Timeout(value = 3, unit = TimeUnit.HOURS)
  void everyInputIsRefusedOrValidForTheRequestedTime() {
    System.out.println(Noise.forMinutes(DecoderFuzzTest::round) + " inputs");
  }

  private static void round(SplittableRandom random) throws Exception {
    switch (random.nextInt(6)) {
      case 0 -> fuzzRequest(random);
      case 1 -> fuzzAnswer(random);
      case 2 -> fuzzRefusal(random);
      case 3 -> fuzzClose(random);
      case 4 -> fuzzIndex(random);
      default -> fuzzStream(random);
    }
  }

  private static void fuzzRequest(SplittableRandom random) {
    ByteBuffer bytes = Noise.mangled(request(random).encode(), random, 12, 8);
    Noise.check(bytes.remaining(), WireException.class, () -> OpenBlocks.decode(bytes));
  }

  private static void fuzzAnswer(SplittableRandom random) {
    OpenBlocks request = request(random);
    ByteBuffer bytes = Noise.mangled(answer(request, random).encode(), random, 12, 8);
    Noise.check(
        bytes.remaining(),
        WireException.class,
        () -> {
          BlocksOpened answer = BlocksOpened.decode(bytes, request);
          assertThat(answer.totalBytes()).isLessThanOrEqualTo(request.maxBytes());
          // A reader uses every answer this way.
          return new ChunkReceiver(answer, request.compression(), Optional.empty()).end();
        });
  }

  private static void fuzzRefusal(SplittableRandom random) {
    ByteBuffer sound = new BlocksRefused(-1, 5, "x".repeat(random.nextInt(300))).encode();
    ByteBuffer bytes = Noise.mangled(sound, random, 12, 8);
    Noise.check(
        bytes.remaining(),
        WireException.class,
        () -> BlocksRefused.matches(bytes) ? BlocksRefused.decode(bytes, 3) : null);
  }

  private static void fuzzClose(SplittableRandom random) {
    ByteBuffer bytes = Noise.mangled(new DiscardStream(new StreamId(1, 2)).encode(), random, 12, 8);
    Noise.check(bytes.remaining(), WireException.class, () -> DiscardStream.decode(bytes));
  }

  private static void fuzzIndex(SplittableRandom random) {
    BlockKey key = new BlockKey(1, 2);
    ByteBuffer bytes = Noise.mangled(Noise.index(key, random), random, 12, 8);
    Noise.check(
        bytes.remaining(),
        CorruptIndexException.class,
        () -> {
          var output = MapOutputFormat.decode(bytes, key);
          return output.bytes(0, output.partitions());
        });
  }

  /** Decodes an answer and then receives an unrelated stream. */
  private static void fuzzStream(SplittableRandom random) {
    OpenBlocks request = request(random);
    BlocksOpened answer = answer(request, random);
    byte[] noise = new byte[random.nextInt(4000)];
    random.nextBytes(noise);
    ByteBuffer target = ByteBuffer.allocateDirect(1 << 16);
    Noise.check(
        noise.length + 64 * answer.chunks(),
        ChecksumException.class,
        () -> {
          try (ChunkReceiver cursor =
              new ChunkReceiver(answer, request.compression(), Optional.empty())) {
            ByteBuffer left = ByteBuffer.wrap(noise);
            while (left.hasRemaining() && cursor.arrived() < answer.chunks()) {
              int count = Math.min(left.remaining(), 1 + random.nextInt(1000));
              ByteBuffer piece = left.slice(left.position(), count);
              left.position(left.position() + count);
              cursor.receive(piece, target);
            }
            return cursor.arrived();
          }
        });
  }

  private static OpenBlocks request(SplittableRandom random) {
    List<BlockRange> ranges = new ArrayList<>();
    int count = 1 + random.nextInt(8);
    for (int i = 0; i < count; i++) {
      int start = random.nextInt(5);
      ranges.add(new BlockRange(new BlockKey(1, i), start, start + 1 + random.nextInt(5)));
    }
    Compression compression = Compression.values()[random.nextInt(3)];
    return new OpenBlocks("cafe0123", 1 << 16, 0, 1000, random.nextBoolean(), compression, ranges);
  }

  private static BlocksOpened answer(OpenBlocks request, SplittableRandom random) {
    int ranges = 1 + random.nextInt(request.ranges().size());
    int[] rangeChunks = new int[ranges];
    ChunkTable table = new ChunkTable();
    List<BlockKey> keys = new ArrayList<>();
    for (int range = 0; range < ranges; range++) {
      BlockRange asked = request.ranges().get(range);
      keys.add(asked.key());
      rangeChunks[range] = random.nextInt(4);
      for (int chunk = 0; chunk < rangeChunks[range]; chunk++) {
        int bytes = 1 + random.nextInt(1500);
        boolean compressed = request.compression() != Compression.NONE && random.nextBoolean();
        int sent = compressed ? 1 + random.nextInt(bytes) : bytes;
        int sum = request.checksums() ? random.nextInt() : 0;
        table.add(asked.startPartition(), random.nextInt(100), sum, sent, bytes);
      }
    }
    StreamId stream = new StreamId(random.nextLong(), random.nextLong());
    return new BlocksOpened(stream, 0, true, keys, rangeChunks, table);
  }
}
