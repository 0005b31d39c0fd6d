package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.DirectByteBufferPool;
import com.nvidia.spark.rapids.shuffle.RefCountedDirectByteBuffer;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Memory of the host for messages: from a pool, as far as they are not too large. Thread-safe. Who
 * has a message closes it.
 */
final class HostMessages {
  private static final Logger LOG = LoggerFactory.getLogger(HostMessages.class);

  private final long pooledBytes;
  private final DirectByteBufferPool pool;
  private final AtomicBoolean warned = new AtomicBoolean();

  /** Messages of which those up to so many bytes are pooled. */
  HostMessages(long pooledBytes) {
    this.pooledBytes = pooledBytes;
    this.pool = new DirectByteBufferPool(pooledBytes);
  }

  /**
   * Memory for a message, at least so large.
   *
   * @throws IllegalArgumentException when it is larger than a buffer of the host can be
   */
  RefCountedDirectByteBuffer take(long bytes) {
    if (bytes <= pooledBytes) {
      return pool.getBuffer(bytes);
    }
    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("a message of " + bytes + " bytes");
    }
    if (warned.compareAndSet(false, true)) {
      LOG.info(
          "A message of {} bytes does not fit the pool of messages;"
              + " spark.rapids.shuffle.maxMetadataSize is {}",
          bytes,
          pooledBytes);
    }
    return new RefCountedDirectByteBuffer(ByteBuffer.allocateDirect((int) bytes), Option.empty());
  }

  /** A message with these bytes, to be read from its start. */
  RefCountedDirectByteBuffer copy(byte[] payload) {
    RefCountedDirectByteBuffer memory = take(payload.length);
    memory.getBuffer().put(payload).flip();
    return memory;
  }
}
