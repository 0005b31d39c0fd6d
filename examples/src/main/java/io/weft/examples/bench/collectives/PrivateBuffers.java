package io.weft.examples.bench.collectives;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import java.nio.ByteBuffer;

/** Direct buffers, which only their rank can reach. */
final class PrivateBuffers implements RankBuffers {
  private ByteBuffer sends = ByteBuffer.allocateDirect(0);
  private ByteBuffer receives = ByteBuffer.allocateDirect(0);

  /** A direct buffer is zeroed when it is made, so all its pages are there. */
  @Override
  public void reserve(long bytes) {
    if (bytes > sends.capacity()) {
      sends = ByteBuffer.allocateDirect(Math.toIntExact(bytes));
      receives = ByteBuffer.allocateDirect(Math.toIntExact(bytes));
    }
  }

  @Override
  public TypedBuffer send(DataType type, long count) {
    return of(sends, type, count);
  }

  @Override
  public TypedBuffer receive(DataType type, long count) {
    return of(receives, type, count);
  }

  private static TypedBuffer of(ByteBuffer memory, DataType type, long count) {
    int bytes = Math.toIntExact(count * type.bytes());
    return TypedBuffer.wrap(memory.duplicate().position(0).limit(bytes), type);
  }

  @Override
  public void close() {
    // The collector frees them.
  }
}
