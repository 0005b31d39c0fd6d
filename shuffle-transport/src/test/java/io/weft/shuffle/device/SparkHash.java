package io.weft.shuffle.device;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Spark's hash of a row, value by value in Java, as a reference for the kernels. A test of the
 * plugin compares the kernels with Spark itself.
 */
final class SparkHash {
  private static final int SEED = 42;

  private SparkHash() {}

  /** The partition of a row by some of its columns. */
  static int partition(HostTable table, int[] keys, int row, int partitions) {
    int hash = SEED;
    for (int key : keys) {
      if (table.isValid(key, row)) {
        hash = hash(table.layout().columns().get(key).kind(), table.value(key, row), hash);
      }
    }
    return Math.floorMod(hash, partitions);
  }

  private static int hash(ColumnKind kind, ByteBuffer value, int seed) {
    return switch (kind) {
      case BOOLEAN -> ofInt(value.get(0) == 0 ? 0 : 1, seed);
      case BYTE -> ofInt(value.get(0), seed);
      case SHORT -> ofInt(value.getShort(0), seed);
      case INT, DATE -> ofInt(value.getInt(0), seed);
      case LONG, TIMESTAMP, DECIMAL64 -> ofLong(value.getLong(0), seed);
      case FLOAT -> ofFloat(value.getFloat(0), seed);
      case DOUBLE -> ofDouble(value.getDouble(0), seed);
      case DECIMAL128 -> ofBytes(decimal(value).toByteArray(), seed);
      case STRING, BINARY -> ofBytes(bytes(value), seed);
      case TENSOR -> throw new IllegalArgumentException("not a key");
    };
  }

  private static BigInteger decimal(ByteBuffer value) {
    byte[] highFirst =
        ByteBuffer.allocate(16).putLong(value.getLong(8)).putLong(value.getLong(0)).array();
    return new BigInteger(highFirst);
  }

  private static byte[] bytes(ByteBuffer value) {
    byte[] bytes = new byte[value.remaining()];
    value.get(bytes);
    return bytes;
  }

  private static int ofFloat(float value, int seed) {
    return ofInt(value == 0 ? 0 : Float.floatToIntBits(value), seed);
  }

  private static int ofDouble(double value, int seed) {
    return ofLong(value == 0 ? 0 : Double.doubleToLongBits(value), seed);
  }

  private static int ofInt(int value, int seed) {
    return finish(mix(seed, value), 4);
  }

  private static int ofLong(long value, int seed) {
    return finish(mix(mix(seed, (int) value), (int) (value >>> 32)), 8);
  }

  private static int ofBytes(byte[] bytes, int seed) {
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
