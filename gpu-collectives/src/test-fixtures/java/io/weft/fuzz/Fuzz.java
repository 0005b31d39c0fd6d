package io.weft.fuzz;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Runs a fuzzer in rounds and creates its messages. {@code -Dweft.fuzz.minutes=10} runs it for 10
 * minutes; a failure names its seed.
 */
public final class Fuzz {
  /** The property for a long run. */
  public static final String MINUTES = "weft.fuzz.minutes";

  private static final int[] WRONG_NUMBERS = {
    0, 1, -1, 2, 63, 64, 65, 1 << 16, 1 << 24, Integer.MAX_VALUE, Integer.MIN_VALUE
  };

  private Fuzz() {}

  /** Runs one round with a random source of that seed. */
  public static void round(long seed, Consumer<SplittableRandom> round) {
    try {
      round.accept(new SplittableRandom(seed));
    } catch (RuntimeException | AssertionError e) {
      throw new AssertionError("seed " + seed, e);
    }
  }

  /** Runs rounds for the minutes in {@link #MINUTES}; returns the number of rounds. */
  public static long forMinutes(Consumer<SplittableRandom> round) {
    long end = System.nanoTime() + TimeUnit.MINUTES.toNanos(Long.getLong(MINUTES));
    SplittableRandom seeds = new SplittableRandom();
    long rounds = 0;
    for (; System.nanoTime() < end; rounds++) {
      round(seeds.nextLong(), round);
    }
    return rounds;
  }

  /** A message that is unchanged, cut, longer, random, or has changed bits or numbers. */
  public static byte[] mangled(byte[] sound, SplittableRandom random) {
    byte[] bytes = sound.clone();
    switch (random.nextInt(6)) {
      case 0 -> bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 1));
      case 1 -> bytes = Arrays.copyOf(bytes, bytes.length + 1 + random.nextInt(100));
      case 2 -> flip(bytes, random);
      case 3 -> changeNumber(bytes, random);
      case 4 -> {
        bytes = new byte[random.nextInt(100)];
        random.nextBytes(bytes);
      }
      default -> {}
    }
    return bytes;
  }

  private static void flip(byte[] bytes, SplittableRandom random) {
    for (int flips = 1 + random.nextInt(8); flips > 0; flips--) {
      bytes[random.nextInt(bytes.length)] ^= (byte) (1 << random.nextInt(8));
    }
  }

  private static void changeNumber(byte[] bytes, SplittableRandom random) {
    int number = WRONG_NUMBERS[random.nextInt(WRONG_NUMBERS.length)];
    if (bytes.length < Integer.BYTES) {
      bytes[random.nextInt(bytes.length)] = (byte) number;
    } else {
      ByteBuffer.wrap(bytes).putInt(random.nextInt(bytes.length - 3), number);
    }
  }
}
