package io.weft.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.weft.catalog.BlockKey;
import io.weft.catalog.CorruptIndexException;
import io.weft.catalog.MapOutputFormat;
import io.weft.integrity.ChecksumException;
import io.weft.wire.BlockRange;
import io.weft.wire.BlocksOpened;
import io.weft.wire.BlocksRefused;
import io.weft.wire.ChunkTable;
import io.weft.wire.CloseStream;
import io.weft.wire.Compression;
import io.weft.wire.OpenBlocks;
import io.weft.wire.StreamId;
import io.weft.wire.WireException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;

/**
 * Everything that reads bytes of another process, fed with what no peer would send: noise, and
 * sound messages that were cut, changed and made to lie about lengths, mostly under a checksum that
 * is right. Each input ends in a value or in the one exception that is meant for it, and takes no
 * more memory than its own size explains.
 *
 * <p>{@code -Dweft.fuzz.minutes=10} runs for so long. A failure names its seed.
 */
class DecoderFuzzTest {
  /** Of memory for each byte of input, besides a little for messages of errors. */
  private static final int MOST_FACTOR = 24;

  private static final int MOST_CONSTANT = 128 << 10;

  /** Classes are loaded by the first inputs. */
  private static final int WARM_UP = 3000;

  private static final int[] LIES = {
    0, 1, -1, 2, 63, 64, 65, 1 << 16, 1 << 17, 1 << 24, Integer.MAX_VALUE, Integer.MIN_VALUE
  };

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private static int runs;

  @Property(tries = 20_000, shrinking = ShrinkingMode.OFF)
  void everyInputIsRefusedOrSound(@ForAll long seed) {
    round(seed);
  }

  @Test
  @EnabledIfSystemProperty(named = "weft.fuzz.minutes", matches = "\\d+")
  @Timeout(value = 3, unit = TimeUnit.HOURS)
  void everyInputIsRefusedOrSoundForAsLongAsAsked() {
    long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(Long.getLong("weft.fuzz.minutes"));
    SplittableRandom seeds = new SplittableRandom();
    long rounds = 0;
    for (; System.nanoTime() < end; rounds++) {
      round(seeds.nextLong());
    }
    System.out.println(rounds + " inputs");
  }

  private static void round(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    try {
      switch (random.nextInt(6)) {
        case 0 -> fuzzRequest(random);
        case 1 -> fuzzAnswer(random);
        case 2 -> fuzzRefusal(random);
        case 3 -> fuzzClose(random);
        case 4 -> fuzzIndex(random);
        default -> fuzzStream(random);
      }
    } catch (Throwable e) {
      throw new AssertionError("seed " + seed, e);
    }
  }

  private interface Decoder {
    Object decode() throws IOException;
  }

  private static void check(int inputBytes, Class<? extends IOException> allowed, Decoder decoder) {
    long before = THREADS.getCurrentThreadAllocatedBytes();
    try {
      decoder.decode();
    } catch (IOException e) {
      assertThat(e).isInstanceOf(allowed);
      assertThat(e.getMessage()).isNotBlank();
    }
    long used = THREADS.getCurrentThreadAllocatedBytes() - before;
    if (++runs > WARM_UP) {
      assertThat(used)
          .as("bytes allocated for %d bytes of input", inputBytes)
          .isLessThanOrEqualTo((long) MOST_FACTOR * inputBytes + MOST_CONSTANT);
    }
  }

  private static void fuzzRequest(SplittableRandom random) {
    ByteBuffer bytes = mangled(request(random).encode(), random, 12, 8);
    check(bytes.remaining(), WireException.class, () -> OpenBlocks.decode(bytes));
  }

  private static void fuzzAnswer(SplittableRandom random) {
    OpenBlocks request = request(random);
    ByteBuffer bytes = mangled(answer(request, random).encode(), random, 12, 8);
    check(
        bytes.remaining(),
        WireException.class,
        () -> {
          BlocksOpened answer = BlocksOpened.decode(bytes, request);
          assertThat(answer.totalBytes()).isLessThanOrEqualTo(request.mostBytes());
          // What a reader does with every answer.
          return new ReceiveCursor(answer, request.compression()).end();
        });
  }

  private static void fuzzRefusal(SplittableRandom random) {
    ByteBuffer sound = new BlocksRefused(-1, 5, "x".repeat(random.nextInt(300))).encode();
    ByteBuffer bytes = mangled(sound, random, 12, 8);
    check(
        bytes.remaining(),
        WireException.class,
        () -> BlocksRefused.isOne(bytes) ? BlocksRefused.decode(bytes, 3) : null);
  }

  private static void fuzzClose(SplittableRandom random) {
    ByteBuffer bytes = mangled(new CloseStream(new StreamId(1, 2)).encode(), random, 12, 8);
    check(bytes.remaining(), WireException.class, () -> CloseStream.decode(bytes));
  }

  private static void fuzzIndex(SplittableRandom random) {
    BlockKey key = new BlockKey(1, 2);
    ByteBuffer bytes = mangled(index(key, random), random, 12, 8);
    check(
        bytes.remaining(),
        CorruptIndexException.class,
        () -> {
          var output = MapOutputFormat.decode(bytes, key);
          return output.bytes(0, output.partitions());
        });
  }

  /** An answer that was decoded, and then a stream that has little to do with it. */
  private static void fuzzStream(SplittableRandom random) {
    OpenBlocks request = request(random);
    BlocksOpened answer = answer(request, random);
    byte[] noise = new byte[random.nextInt(4000)];
    random.nextBytes(noise);
    ByteBuffer target = ByteBuffer.allocateDirect(1 << 16);
    check(
        noise.length + 64 * answer.chunks(),
        ChecksumException.class,
        () -> {
          try (ReceiveCursor cursor = new ReceiveCursor(answer, request.compression())) {
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
        boolean packed = request.compression() != Compression.NONE && random.nextBoolean();
        int sent = packed ? 1 + random.nextInt(bytes) : bytes;
        int sum = request.checksums() ? random.nextInt() : 0;
        table.add(asked.startPartition(), random.nextInt(100), sum, sent, bytes);
      }
    }
    StreamId stream = new StreamId(random.nextLong(), random.nextLong());
    return new BlocksOpened(stream, 0, true, keys, rangeChunks, table);
  }

  /** As {@link MapOutputFormat} lays it out. */
  private static ByteBuffer index(BlockKey key, SplittableRandom random) {
    int partitions = random.nextInt(6);
    int chunks = partitions == 0 ? 0 : random.nextInt(10);
    ByteBuffer bytes =
        ByteBuffer.allocate(40 + 4 * (partitions + 1) + 28 * chunks).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putInt(0x58544657).putInt(MapOutputFormat.VERSION).putInt(0).putInt(key.shuffleId());
    bytes.putLong(key.mapId()).putLong(1 << 20).putInt(partitions).putInt(chunks).putInt(0);
    for (int partition = 0; partition < partitions; partition++) {
      bytes.putInt(chunks);
    }
    for (int i = 0; i < 3 * chunks; i++) {
      bytes.putInt(random.nextInt(1 << 20));
    }
    for (int i = 0; i < chunks; i++) {
      bytes.putLong(64L * random.nextInt(1000));
    }
    for (int i = 0; i < chunks; i++) {
      bytes.putLong(1 + random.nextInt(1000));
    }
    return sealed(bytes.flip(), 12, 8);
  }

  /**
   * A message as it is, or changed in one of several ways, or noise.
   *
   * @param checkedFrom where the bytes begin that the checksum is of
   * @param sumAt where the checksum is
   */
  private static ByteBuffer mangled(
      ByteBuffer sound, SplittableRandom random, int checkedFrom, int sumAt) {
    byte[] bytes = new byte[sound.remaining()];
    sound.get(bytes);
    switch (random.nextInt(6)) {
      case 0 -> bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 1));
      case 1 -> bytes = Arrays.copyOf(bytes, bytes.length + 1 + random.nextInt(100));
      case 2 -> {
        for (int flips = 1 + random.nextInt(8); flips > 0; flips--) {
          bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
        }
      }
      case 3 -> {
        for (int lies = 1 + random.nextInt(3); lies > 0; lies--) {
          int at = random.nextInt(bytes.length / 4) * 4;
          int lie = LIES[random.nextInt(LIES.length)];
          ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putInt(at, lie);
        }
      }
      case 4 -> {
        int from = Math.min(bytes.length, random.nextInt(2) * checkedFrom);
        byte[] noise = new byte[random.nextInt(500)];
        random.nextBytes(noise);
        bytes = Arrays.copyOf(bytes, from + noise.length);
        System.arraycopy(noise, 0, bytes, from, noise.length);
      }
      default -> {}
    }
    ByteBuffer result = ByteBuffer.wrap(bytes);
    boolean seal = bytes.length >= checkedFrom && random.nextInt(5) > 0;
    return seal ? sealed(result, checkedFrom, sumAt) : result;
  }

  private static ByteBuffer sealed(ByteBuffer bytes, int checkedFrom, int sumAt) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate().position(checkedFrom));
    return bytes.order(ByteOrder.LITTLE_ENDIAN).putInt(sumAt, (int) crc.getValue());
  }
}
