package com.nvidia.spark.rapids.shuffle;

import java.nio.ByteBuffer;
import scala.Option;

/** Host memory, possibly of a pool. */
public class RefCountedDirectByteBuffer implements AutoCloseable {
  private final ByteBuffer buffer;
  private final Option<DirectByteBufferPool> pool;
  private boolean closed;

  public RefCountedDirectByteBuffer(ByteBuffer buffer, Option<DirectByteBufferPool> pool) {
    this.buffer = buffer;
    this.pool = pool;
  }

  public ByteBuffer acquire() {
    return buffer;
  }

  public ByteBuffer getBuffer() {
    return buffer;
  }

  public boolean isClosed() {
    return closed;
  }

  @Override
  public void close() {
    if (closed) {
      throw new IllegalStateException("closed twice");
    }
    closed = true;
    if (pool.isDefined()) {
      pool.get().releaseBuffer(this);
    }
  }
}
