package com.nvidia.spark.rapids.shuffle;

import java.nio.ByteBuffer;

/** A message in memory of the host. */
public class MetadataTransportBuffer implements TransportBuffer {
  private final RefCountedDirectByteBuffer dbb;

  public MetadataTransportBuffer(RefCountedDirectByteBuffer dbb) {
    this.dbb = dbb;
  }

  @Override
  public long getAddress() {
    throw new UnsupportedOperationException("a stub");
  }

  @Override
  public long getLength() {
    return dbb.getBuffer().remaining();
  }

  public ByteBuffer getBuffer() {
    return dbb.getBuffer();
  }

  @Override
  public void close() {
    dbb.close();
  }
}
