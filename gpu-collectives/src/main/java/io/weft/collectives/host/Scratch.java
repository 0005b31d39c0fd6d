package io.weft.collectives.host;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;

/**
 * Private temporary memory for operations. It grows to the largest need and is reused; the garbage
 * collector frees it with the communicator. One thread at a time.
 */
final class Scratch {
  private static final int SMALLEST = 4096;

  private ByteBuffer memory = ByteBuffer.allocateDirect(SMALLEST);

  /**
   * The address of at least this many bytes; earlier content is lost.
   *
   * @param bytes up to 2 GiB - 1
   */
  long address(long bytes) {
    if (bytes > memory.capacity()) {
      long grown = Math.min(Integer.MAX_VALUE, Math.max(bytes, 2L * memory.capacity()));
      memory = ByteBuffer.allocateDirect(Math.toIntExact(Math.max(bytes, grown)));
    }
    return Memory.addressOf(memory);
  }

  /** The memory as a buffer. */
  TypedBuffer buffer(DataType type, long count) {
    return TypedBuffer.at(address(count * type.bytes()), type, count);
  }
}
