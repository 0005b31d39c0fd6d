package io.weft.examples.bench.collectives;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import java.nio.ByteBuffer;

/** A rank's memory to send from and to receive into, touched before it is used. One thread. */
final class RankBuffers {
  private ByteBuffer sends = ByteBuffer.allocateDirect(0);
  private ByteBuffer receives = ByteBuffer.allocateDirect(0);

  /** Buffers of at least so many bytes; what was in them is lost. */
  void reserve(long bytes) {
    if (bytes > sends.capacity()) {
      sends = touched(Math.toIntExact(bytes));
      receives = touched(Math.toIntExact(bytes));
    }
  }

  /** A direct buffer is zeroed when it is made, so all its pages are there. */
  private static ByteBuffer touched(int bytes) {
    return ByteBuffer.allocateDirect(bytes);
  }

  TypedBuffer send(DataType type, long count) {
    return of(sends, type, count);
  }

  TypedBuffer receive(DataType type, long count) {
    return of(receives, type, count);
  }

  private static TypedBuffer of(ByteBuffer memory, DataType type, long count) {
    int bytes = Math.toIntExact(count * type.bytes());
    return TypedBuffer.wrap(memory.duplicate().position(0).limit(bytes), type);
  }
}
