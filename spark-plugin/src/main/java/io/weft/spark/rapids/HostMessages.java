package io.weft.spark.rapids;

import com.nvidia.spark.rapids.shuffle.DirectByteBufferPool;
import com.nvidia.spark.rapids.shuffle.RefCountedDirectByteBuffer;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Host memory for messages; small messages come from a pool. Thread-safe. The holder of a message
 * closes it.
 */
final class HostMessages {
  private static final Logger LOG = LoggerFactory.getLogger(HostMessages.class);

  private final long pooledBytes;
  private final DirectByteBufferPool pool;
  private final AtomicBoolean warned = new AtomicBoolean();

  /** Creates the pool for messages of up to this size. */
  HostMessages(long pooledBytes) {
    this.pooledBytes = pooledBytes;
    this.pool = new DirectByteBufferPool(pooledBytes);
  }

  /**
   * Memory of at least this size.
   *
   * @throws IllegalArgumentException if the size is larger than a host buffer can be
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

  /** Copies bytes into a message, positioned at its start. */
  RefCountedDirectByteBuffer copy(byte[] payload) {
    RefCountedDirectByteBuffer memory = take(payload.length);
    memory.getBuffer().put(payload).flip();
    return memory;
  }
}
