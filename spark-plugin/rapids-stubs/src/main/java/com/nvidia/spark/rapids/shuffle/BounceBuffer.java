package com.nvidia.spark.rapids.shuffle;

import ai.rapids.cudf.MemoryBuffer;

/** Memory that data passes through. */
public abstract class BounceBuffer implements AutoCloseable {
  private final MemoryBuffer buffer;
  private boolean closed;

  public BounceBuffer(MemoryBuffer buffer) {
    this.buffer = buffer;
  }

  public MemoryBuffer buffer() {
    return buffer;
  }

  public boolean isClosed() {
    return closed;
  }

  public abstract void free(BounceBuffer buffer);

  @Override
  public void close() {
    if (closed) {
      throw new IllegalStateException("closed twice");
    }
    free(this);
    closed = true;
  }
}
