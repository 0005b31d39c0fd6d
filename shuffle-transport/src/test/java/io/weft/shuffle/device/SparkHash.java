package io.weft.shuffle.device;

import io.weft.testgpus.SparkMurmur3;
import java.math.BigInteger;
import java.nio.ByteBuffer;

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
      case BOOLEAN -> SparkMurmur3.ofInt(value.get(0) == 0 ? 0 : 1, seed);
      case BYTE -> SparkMurmur3.ofInt(value.get(0), seed);
      case SHORT -> SparkMurmur3.ofInt(value.getShort(0), seed);
      case INT, DATE -> SparkMurmur3.ofInt(value.getInt(0), seed);
      case LONG, TIMESTAMP, DECIMAL64 -> SparkMurmur3.ofLong(value.getLong(0), seed);
      case FLOAT -> SparkMurmur3.ofFloat(value.getFloat(0), seed);
      case DOUBLE -> SparkMurmur3.ofDouble(value.getDouble(0), seed);
      case DECIMAL128 -> SparkMurmur3.ofBytes(decimal(value).toByteArray(), seed);
      case STRING, BINARY -> SparkMurmur3.ofBytes(bytes(value), seed);
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
}
