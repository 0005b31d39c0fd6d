package io.weft.tensor;

import io.weft.collectives.BufferOwner;
import io.weft.memory.Memory;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;

/**
 * The zeroed memory of one tensor, outside the heap. It is freed by {@link #close}, or by the
 * collector when it is unreachable, because no code closes a tensor of an RDD.
 *
 * <p>Up to 2 GiB it is a direct buffer. So the JVM's limit for direct memory applies, and reaching
 * it makes the collector free unreachable tensors. Thread-safe; the caller of close must be its
 * last user.
 */
abstract class HostBlock implements BufferOwner, AutoCloseable {
  private final long address;
  private final long bytes;
  private volatile boolean closed;

  private HostBlock(long address, long bytes) {
    this.address = address;
    this.bytes = bytes;
  }

  static HostBlock allocate(long bytes) {
    return bytes <= Integer.MAX_VALUE
        ? new Direct(ByteBuffer.allocateDirect((int) bytes))
        : Large.allocate(bytes);
  }

  @Override
  public long address() {
    if (closed) {
      throw new IllegalStateException("the tensor of this memory has been closed");
    }
    return address;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public final void close() {
    closed = true;
    free();
  }

  /** Frees the memory; called once or more. */
  abstract void free();

  private static final class Direct extends HostBlock {
    private final ByteBuffer buffer;

    Direct(ByteBuffer buffer) {
      super(Memory.addressOf(buffer), buffer.capacity());
      this.buffer = buffer;
    }

    @Override
    void free() {
      Memory.unmap(buffer);
    }
  }

  /** A block that is too long for a direct buffer. */
  private static final class Large extends HostBlock {
    private final Cleaner.Cleanable cleanable;

    private Large(long address, long bytes) {
      super(address, bytes);
      this.cleanable = Cleaners.SHARED.register(this, () -> Memory.free(address));
    }

    static Large allocate(long bytes) {
      long address = Memory.allocate(bytes);
      Memory.setMemory(address, bytes, (byte) 0);
      return new Large(address, bytes);
    }

    @Override
    void free() {
      cleanable.clean();
    }
  }

  /** Its thread starts with the first large block. */
  private static final class Cleaners {
    static final Cleaner SHARED =
        Cleaner.create(
            task -> {
              Thread thread = new Thread(task, "weft-tensor-cleaner");
              thread.setDaemon(true);
              return thread;
            });
  }
}
