package io.weft.examples.bench.collectives;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;

/** A rank's memory to send from and to receive into, touched before it is used. One thread. */
interface RankBuffers extends AutoCloseable {
  /** Buffers of at least so many bytes; what was in them is lost. All ranks ask for the same. */
  void reserve(long bytes);

  TypedBuffer send(DataType type, long count);

  TypedBuffer receive(DataType type, long count);

  @Override
  void close();
}
