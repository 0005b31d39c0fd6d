package io.weft.spark.shuffle;

import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.io.Input;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorSlab;
import io.weft.tensor.TensorType;
import io.weft.tensor.codec.TensorDecoder;

/**
 * Reads records in place, one after the other. Each tensor is copied once into its own memory, so
 * that it can outlive the record. Not thread-safe.
 */
final class RecordInput extends Input {
  /** The bytes before a tensor are few, and bytes that are read ahead are read twice. */
  private static final int AHEAD_BYTES = 256;

  private final TensorSlab slab = new TensorSlab();
  private long next;
  private long end;

  /** Creates an input without a record. */
  public RecordInput() {
    super(AHEAD_BYTES);
    setLimit(0);
  }

  /** Starts another record. Its memory is only read. */
  public void open(long address, long bytes) {
    next = address;
    end = address + bytes;
    position = 0;
    setLimit(0);
    total = 0;
  }

  @Override
  protected int fill(byte[] target, int offset, int count) {
    int bytes = (int) Math.min(count, end - next);
    if (bytes == 0 && count > 0) {
      return -1;
    }
    Memory.copyTo(next, target, Memory.BYTE_ARRAY + offset, bytes);
    next += bytes;
    return bytes;
  }

  /** Skips bytes and returns their address. */
  private long take(long bytes) {
    int ahead = limit - position;
    long address = next - ahead;
    if (bytes < 0 || bytes > end - address) {
      throw new KryoException(
          "a tensor of " + bytes + " bytes where " + (end - address) + " are left");
    }
    next = address + bytes;
    position = 0;
    setLimit(0);
    return address;
  }

  Tensor readTensor(TensorType type) {
    long address = take(type.bytes());
    Tensor tensor = slab.allocate(type);
    Memory.copy(address, tensor.address(), type.bytes());
    return tensor;
  }

  /** Reads a tensor whose codec and type precede its elements. */
  Tensor readEncoded() {
    long bytes = Memory.getLong(take(Long.BYTES));
    long address = take(bytes);
    return TensorDecoder.decode(address, bytes, slab::allocate);
  }
}
