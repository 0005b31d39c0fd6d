package io.weft.spark.kryo;

import com.esotericsoftware.kryo.KryoException;
import com.esotericsoftware.kryo.io.Input;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorSlab;
import io.weft.tensor.TensorType;
import io.weft.tensor.codec.TensorDecoder;

/**
 * Reads one record after the other where it lies. Tensors are copied into memory of their own, so
 * that they can be kept for longer than the record: once, and with no array between. For one
 * thread.
 */
public final class RecordInput extends Input {
  /** What lies before a tensor is short, and what is read ahead is read twice. */
  private static final int AHEAD_BYTES = 256;

  private final TensorSlab slab = new TensorSlab();
  private long next;
  private long end;

  /** An input of no bytes. */
  public RecordInput() {
    super(AHEAD_BYTES);
    setLimit(0);
  }

  /** Turns to another record; its memory is only read. */
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

  /** Skips bytes and returns where they are. */
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

  /** One whose codec and type stand before its elements. */
  Tensor readEncoded() {
    long bytes = Memory.getLong(take(Long.BYTES));
    long address = take(bytes);
    return TensorDecoder.decode(address, bytes, slab::allocate);
  }
}
