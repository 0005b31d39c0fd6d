package io.weft.testgpus;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Spark's Murmur3 of single values, with the hash of the values before as the seed. */
public final class SparkMurmur3 {
  private SparkMurmur3() {}

  /** Of a boolean, and of integers up to 4 bytes. */
  public static int ofInt(int value, int seed) {
    return finish(mix(seed, value), 4);
  }

  /** Of integers of 8 bytes, and decimals to 18 digits. */
  public static int ofLong(long value, int seed) {
    return finish(mix(mix(seed, (int) value), (int) (value >>> 32)), 8);
  }

  /** All zeros are one value, and so are all NaNs. */
  public static int ofFloat(float value, int seed) {
    return ofInt(value == 0 ? 0 : Float.floatToIntBits(value), seed);
  }

  /** As {@link #ofFloat}. */
  public static int ofDouble(double value, int seed) {
    return ofLong(value == 0 ? 0 : Double.doubleToLongBits(value), seed);
  }

  /** Of strings, and of wider decimals as the shortest two's complement. */
  public static int ofBytes(byte[] bytes, int seed) {
    ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int hash = seed;
    while (in.remaining() >= 4) {
      hash = mix(hash, in.getInt());
    }
    while (in.hasRemaining()) {
      hash = mix(hash, in.get());
    }
    return finish(hash, bytes.length);
  }

  private static int mix(int hash, int word) {
    int mixed = Integer.rotateLeft(word * 0xcc9e2d51, 15) * 0x1b873593;
    return Integer.rotateLeft(hash ^ mixed, 13) * 5 + 0xe6546b64;
  }

  private static int finish(int hash, int bytes) {
    int mixed = hash ^ bytes;
    mixed = (mixed ^ mixed >>> 16) * 0x85ebca6b;
    mixed = (mixed ^ mixed >>> 13) * 0xc2b2ae35;
    return mixed ^ mixed >>> 16;
  }
}
