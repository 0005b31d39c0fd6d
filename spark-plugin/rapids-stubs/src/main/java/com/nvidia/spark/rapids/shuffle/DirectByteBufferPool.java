package com.nvidia.spark.rapids.shuffle;

import java.nio.ByteBuffer;
import java.util.concurrent.ConcurrentLinkedQueue;
import scala.Option;

/** Memory of the host for messages, of one size. */
public class DirectByteBufferPool {
  private final long bufferSize;
  private final ConcurrentLinkedQueue<ByteBuffer> free = new ConcurrentLinkedQueue<>();

  public DirectByteBufferPool(long bufferSize) {
    this.bufferSize = bufferSize;
  }

  public RefCountedDirectByteBuffer getBuffer(long size) {
    if (size > bufferSize) {
      throw new IllegalStateException(size + " bytes of a pool of " + bufferSize);
    }
    ByteBuffer buffer = free.poll();
    return new RefCountedDirectByteBuffer(
        buffer == null ? ByteBuffer.allocateDirect((int) bufferSize) : buffer.clear(),
        Option.apply(this));
  }

  public boolean releaseBuffer(RefCountedDirectByteBuffer buffer) {
    return free.offer(buffer.getBuffer());
  }
}
