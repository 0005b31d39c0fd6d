package io.weft.spark.columns;

import java.util.Arrays;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.unsafe.Platform;

/**
 * Off-heap buffers of 64·2ⁿ bytes for the builders of one task. The first touch of new memory costs
 * many times more than a write, so pools outlive their tasks. Closing a pool makes it idle, and the
 * next {@link #borrow()} reuses it. An idle pool keeps at most {@link #KEPT_BYTES}. There are at
 * most about as many idle pools as processors. {@link #freeIdle()} frees them.
 *
 * <p>Thread-safety: the static methods are thread-safe; a pool belongs to one thread.
 */
public final class BufferPool implements AutoCloseable {
  private static final int SMALLEST_LOG2 = 6;
  private static final int CLASSES = 40 - SMALLEST_LOG2;
  static final int BLOCK_BYTES = 4 << 20;
  private static final int LARGEST_CARVED = BLOCK_BYTES / 4;
  private static final long KEPT_BYTES = 64L << 20;
  private static final int KEPT_POOLS = 2 * Runtime.getRuntime().availableProcessors();

  private static final ConcurrentLinkedDeque<BufferPool> IDLE = new ConcurrentLinkedDeque<>();
  private static final AtomicInteger IDLE_COUNT = new AtomicInteger();

  private final AddressList[] free = new AddressList[CLASSES];
  private final AddressList blocks = new AddressList();
  private final AddressList large = new AddressList();
  private final AddressList largeClasses = new AddressList();
  private int nextBlock;
  private long next;
  private long end;
  private long usedBytes;
  private long largeBytes;

  private BufferPool() {
    Arrays.setAll(free, i -> new AddressList());
  }

  /** Returns a pool without buffers in use. The caller closes it. */
  static BufferPool borrow() {
    BufferPool idle = IDLE.pollFirst();
    if (idle == null) {
      return new BufferPool();
    }
    IDLE_COUNT.decrementAndGet();
    return idle;
  }

  /** Frees the memory of all idle pools. Called when the executor ends. */
  public static void freeIdle() {
    for (BufferPool pool = IDLE.pollFirst(); pool != null; pool = IDLE.pollFirst()) {
      IDLE_COUNT.decrementAndGet();
      pool.trim(0);
    }
  }

  /** Returns the class of the smallest buffer with at least that many bytes. */
  static int sizeClass(long bytes) {
    long least = Math.max(bytes, 1L << SMALLEST_LOG2);
    return Long.SIZE - Long.numberOfLeadingZeros(least - 1) - SMALLEST_LOG2;
  }

  /** Bytes of a buffer of that class. */
  static long bytes(int sizeClass) {
    return 1L << (sizeClass + SMALLEST_LOG2);
  }

  /**
   * Allocates a buffer of a class. Its content is undefined. It is aligned to 64 bytes if it is
   * part of a block.
   */
  long allocate(int sizeClass) {
    long bytes = bytes(sizeClass);
    usedBytes += bytes;
    AddressList list = free[sizeClass];
    if (list.size() > 0) {
      return list.removeLast();
    }
    return bytes <= LARGEST_CARVED ? carve(bytes) : allocateLarge(bytes);
  }

  /** Frees a buffer. */
  void free(long address, int sizeClass) {
    usedBytes -= bytes(sizeClass);
    free[sizeClass].add(address);
  }

  /** Bytes of the buffers in use. */
  long usedBytes() {
    return usedBytes;
  }

  /** Bytes allocated from the system, in use or not. */
  long reservedBytes() {
    return (long) BLOCK_BYTES * blocks.size() + largeBytes;
  }

  private void reset() {
    for (AddressList list : free) {
      list.clear();
    }
    for (int i = 0; i < large.size(); i++) {
      free[(int) largeClasses.get(i)].add(large.get(i));
    }
    usedBytes = 0;
    nextBlock = 0;
    next = 0;
    end = 0;
  }

  /** Frees every buffer and makes the pool idle. The caller must not use it again. */
  @Override
  public void close() {
    trim(KEPT_BYTES);
    if (IDLE_COUNT.incrementAndGet() <= KEPT_POOLS) {
      IDLE.addFirst(this);
    } else {
      IDLE_COUNT.decrementAndGet();
      trim(0);
    }
  }

  /**
   * Frees every buffer and returns memory to the system, until at most that many bytes are left.
   */
  void trim(long keptBytes) {
    while (reservedBytes() > keptBytes && large.size() > 0) {
      Platform.freeMemory(large.removeLast());
      largeBytes -= bytes((int) largeClasses.removeLast());
    }
    while (reservedBytes() > keptBytes) {
      Platform.freeMemory(blocks.removeLast());
    }
    reset();
  }

  private long carve(long bytes) {
    if (end - next < bytes) {
      if (nextBlock == blocks.size()) {
        blocks.add(Platform.allocateMemory(BLOCK_BYTES));
      }
      long block = blocks.get(nextBlock++);
      next = ChunkFormat.align(block);
      end = block + BLOCK_BYTES;
    }
    long address = next;
    next += bytes;
    return address;
  }

  private long allocateLarge(long bytes) {
    long address = Platform.allocateMemory(bytes);
    large.add(address);
    largeClasses.add(sizeClass(bytes));
    largeBytes += bytes;
    return address;
  }

  /** A list of addresses or other numbers that grows and is mostly used as a stack. */
  static final class AddressList {
    private long[] addresses = new long[16];
    private int size;

    int size() {
      return size;
    }

    long get(int index) {
      return addresses[index];
    }

    void add(long address) {
      if (size == addresses.length) {
        addresses = Arrays.copyOf(addresses, 2 * size);
      }
      addresses[size++] = address;
    }

    long removeLast() {
      return addresses[--size];
    }

    void clear() {
      size = 0;
    }
  }
}
