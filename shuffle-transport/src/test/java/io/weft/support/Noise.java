package io.weft.support;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputFormat;
import java.lang.management.ClassLoadingMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;

/**
 * Runs fuzzing rounds, creates invalid messages and checks their decoders. {@code
 * -Dweft.fuzz.minutes=10} runs for 10 minutes. A failure names its seed.
 */
public final class Noise {
  /** The property that requests a long run. */
  public static final String MINUTES = "weft.fuzz.minutes";

  /** The memory limit per byte of input, besides a constant for error messages. */
  private static final int MAX_FACTOR = 24;

  private static final int MAX_CONSTANT = 128 << 10;

  private static final int[] WRONG_NUMBERS = {
    0, 1, -1, 2, 63, 64, 65, 1 << 16, 1 << 17, 1 << 24, Integer.MAX_VALUE, Integer.MIN_VALUE
  };

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private static final ClassLoadingMXBean CLASSES = ManagementFactory.getClassLoadingMXBean();

  private Noise() {}

  /** One fuzzing round. */
  @FunctionalInterface
  public interface Round {
    void run(SplittableRandom random) throws Exception;
  }

  /** Decodes an input. */
  @FunctionalInterface
  public interface Decoder {
    Object decode() throws Exception;
  }

  /** Runs one round with a random generator of this seed. */
  public static void round(long seed, Round round) {
    try {
      round.run(new SplittableRandom(seed));
    } catch (Throwable e) {
      throw new AssertionError("seed " + seed, e);
    }
  }

  /** Runs rounds for the minutes in {@link #MINUTES}. Returns their number. */
  public static long forMinutes(Round round) {
    long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(Long.getLong(MINUTES));
    SplittableRandom seeds = new SplittableRandom();
    long rounds = 0;
    for (; System.nanoTime() < end; rounds++) {
      round(seeds.nextLong(), round);
    }
    return rounds;
  }

  /**
   * Asserts that an input is decoded or refused with the allowed exception, with little heap
   * memory. An input that loads classes, the first of its path, may take more.
   */
  public static void check(int inputBytes, Class<? extends Exception> allowed, Decoder decoder) {
    long classes = CLASSES.getTotalLoadedClassCount();
    long before = THREADS.getCurrentThreadAllocatedBytes();
    try {
      decoder.decode();
    } catch (Exception e) {
      assertThat(e).isInstanceOf(allowed);
      assertThat(e.getMessage()).isNotBlank();
    }
    long used = THREADS.getCurrentThreadAllocatedBytes() - before;
    if (CLASSES.getTotalLoadedClassCount() == classes) {
      assertThat(used)
          .as("bytes allocated for %d bytes of input", inputBytes)
          .isLessThanOrEqualTo((long) MAX_FACTOR * inputBytes + MAX_CONSTANT);
    }
  }

  /** Returns an index of a map output in the format of {@link MapOutputFormat}. */
  public static ByteBuffer index(BlockKey key, SplittableRandom random) {
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
    if (chunks > 0 && random.nextInt(50) == 0) {
      // The longest chunk of a segment without rounding.
      bytes.putLong(bytes.position() - 16 * chunks, 0);
      bytes.putLong(bytes.position() - 8 * chunks, Integer.MAX_VALUE);
    }
    return sealed(bytes.flip(), 12, 8);
  }

  /**
   * Returns a message unchanged, changed in one of several ways, or noise.
   *
   * @param checkedFrom offset of the bytes that the checksum covers
   * @param sumAt offset of the checksum
   */
  public static ByteBuffer mangled(
      ByteBuffer sound, SplittableRandom random, int checkedFrom, int sumAt) {
    byte[] bytes = mangled(sound, random, checkedFrom);
    ByteBuffer result = ByteBuffer.wrap(bytes);
    boolean seal = bytes.length >= checkedFrom && random.nextInt(5) > 0;
    return seal ? sealed(result, checkedFrom, sumAt) : result;
  }

  /**
   * As {@link #mangled(ByteBuffer, SplittableRandom, int, int)}, for a message without a checksum.
   *
   * @param headBytes of its beginning, which noise keeps every second time
   */
  public static byte[] mangled(ByteBuffer sound, SplittableRandom random, int headBytes) {
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
        for (int changes = 1 + random.nextInt(3); changes > 0; changes--) {
          int at = random.nextInt(bytes.length / 4) * 4;
          int wrong = WRONG_NUMBERS[random.nextInt(WRONG_NUMBERS.length)];
          ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putInt(at, wrong);
        }
      }
      case 4 -> {
        int from = Math.min(bytes.length, random.nextInt(2) * headBytes);
        byte[] noise = new byte[random.nextInt(500)];
        random.nextBytes(noise);
        bytes = Arrays.copyOf(bytes, from + noise.length);
        System.arraycopy(noise, 0, bytes, from, noise.length);
      }
      default -> {}
    }
    return bytes;
  }

  /** Sets the correct checksum of a message. */
  public static ByteBuffer sealed(ByteBuffer bytes, int checkedFrom, int sumAt) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate().position(checkedFrom));
    return bytes.order(ByteOrder.LITTLE_ENDIAN).putInt(sumAt, (int) crc.getValue());
  }
}
