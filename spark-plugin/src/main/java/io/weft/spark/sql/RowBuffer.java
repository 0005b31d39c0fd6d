package io.weft.spark.sql;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.ShuffleWriteMetrics;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.LongArray;
import org.apache.spark.unsafe.memory.MemoryBlock;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillReader;
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillWriter;

/**
 * Copies of the packed rows of a task, each with a 64-bit hash of its bytes. The rows are in pages
 * of the task's execution memory. If it has no more, they are written to Spark's local disks, by
 * Spark's writer of sorted runs.
 *
 * <p>It is filled by {@link #append}, then {@link #forEachHash} may be called, then {@link #next}
 * returns and frees the rows, in any order.
 *
 * <p>For one task thread. Only {@link #spill} may be called by other threads of the task.
 */
final class RowBuffer extends MemoryConsumer implements AutoCloseable {
  private static final long FIRST_PAGE_BYTES = 64L << 10;

  /** From this size on, Spark's allocator uses freed pages again. */
  private static final long POOLED_BYTES = 1L << 20;

  private static final int SPILL_BUFFER_BYTES = 32 << 10;
  private static final long SEED = 42;

  private final TaskContext context;
  private final long maxPageBytes;

  /** Full pages. Guarded by this, because another thread may spill them. */
  private final Deque<Page> pages = new ArrayDeque<>();

  private final List<UnsafeSorterSpillWriter> spills = new ArrayList<>();
  private final Deque<UnsafeSorterSpillWriter> unread = new ArrayDeque<>();
  private volatile boolean emitting;
  private boolean scanning;

  /** The page that is filled or read. */
  private MemoryBlock page;

  private Object base;
  private long at;

  /** Address of the hash of the current row, which hashes of later rows precede. */
  private long hashAt;

  private int left;
  private UnsafeSorterSpillReader reader;

  /** Bytes of all pages. Spark's own field for them has another type from Spark 4.2 on. */
  private final AtomicLong held = new AtomicLong();

  private long rows;
  private long lowest = Long.MAX_VALUE;
  private long highest = Long.MIN_VALUE;

  private Object rowBase;
  private long rowOffset;
  private int rowBytes;
  private long rowHash;

  /**
   * A full page: rows, each after its size as an int64, from the start; their hashes from the end.
   */
  private record Page(MemoryBlock block, int rows) {}

  /** Creates an empty buffer, which the end of the task frees. */
  RowBuffer(TaskContext context) {
    this(context, context.taskMemoryManager());
    context.addTaskCompletionListener((TaskCompletionListener) ended -> close());
  }

  private RowBuffer(TaskContext context, TaskMemoryManager memory) {
    super(memory, FIRST_PAGE_BYTES, memory.getTungstenMemoryMode());
    this.context = context;
    this.maxPageBytes = memory.pageSizeBytes();
  }

  /**
   * Copies a row.
   *
   * @throws IOException if the local disks are full
   */
  void append(UnsafeRow row) throws IOException {
    int bytes = row.getSizeInBytes();
    if (hashAt - at < bytes + 2L * Long.BYTES) {
      addPage(bytes + 2L * Long.BYTES);
    }
    long hash = XXH64.hashUnsafeWords(row.getBaseObject(), row.getBaseOffset(), bytes, SEED);
    Platform.putLong(base, at, bytes);
    Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), base, at + Long.BYTES, bytes);
    at += Long.BYTES + bytes;
    hashAt -= Long.BYTES;
    Platform.putLong(base, hashAt, hash);
    left++;
    rows++;
    lowest = Math.min(lowest, hash);
    highest = Math.max(highest, hash);
  }

  private void addPage(long bytes) {
    context.killTaskIfInterrupted();
    sealPage();
    long wanted = Math.max(bytes, Math.min(maxPageBytes, growth()));
    MemoryBlock block = taskMemoryManager.allocatePage(wanted, this);
    if (block != null && block.size() < bytes) {
      taskMemoryManager.freePage(block, this);
      block = null;
    }
    // The second call throws Spark's error if there is not even memory for one row.
    block = block == null ? allocatePage(bytes) : block;
    held.addAndGet(block.size());
    open(block, 0);
  }

  /** Counted here too, because {@link #freePage} gives the array back. */
  @Override
  public LongArray allocateArray(long size) {
    LongArray array = super.allocateArray(size);
    held.addAndGet(array.memoryBlock().size());
    return array;
  }

  @Override
  protected void freePage(MemoryBlock block) {
    held.addAndGet(-block.size());
    taskMemoryManager.freePage(block, this);
  }

  @Override
  public long getUsed() {
    return held.get();
  }

  /** Bytes of the next page: large pages for many rows, and little waste for few. */
  private long growth() {
    long used = getUsed();
    return used < POOLED_BYTES
        ? Math.max(FIRST_PAGE_BYTES, used)
        : Math.max(POOLED_BYTES, used / 8);
  }

  private void open(MemoryBlock block, int count) {
    page = block;
    base = block.getBaseObject();
    at = block.getBaseOffset();
    hashAt = at + block.size() / Long.BYTES * Long.BYTES;
    left = count;
  }

  private void sealPage() {
    if (page != null) {
      synchronized (this) {
        pages.add(new Page(page, left));
      }
      page = null;
      hashAt = at;
      left = 0;
    }
  }

  /** Rows appended. */
  long rows() {
    return rows;
  }

  /** The lowest hash; undefined without rows. */
  long lowestHash() {
    return lowest;
  }

  /** The highest hash; undefined without rows. */
  long highestHash() {
    return highest;
  }

  /** Calls a function with the hash of every row. No row may be appended afterwards. */
  void forEachHash(LongConsumer action) throws IOException {
    sealPage();
    scanning = true;
    try {
      for (Page full : pages) {
        long end = full.block().getBaseOffset() + full.block().size() / Long.BYTES * Long.BYTES;
        for (int row = 1; row <= full.rows(); row++) {
          long position = end - (long) row * Long.BYTES;
          action.accept(Platform.getLong(full.block().getBaseObject(), position));
        }
      }
      for (UnsafeSorterSpillWriter spill : spills) {
        try (UnsafeSorterSpillReader spilled = open(spill)) {
          while (spilled.hasNext()) {
            spilled.loadNext();
            action.accept(spilled.getKeyPrefix());
          }
        }
      }
    } finally {
      scanning = false;
    }
  }

  private static UnsafeSorterSpillReader open(UnsafeSorterSpillWriter spill) throws IOException {
    return spill.getReader(SparkEnv.get().serializerManager());
  }

  /**
   * Moves to the next row, which is valid until the next call. Frees the memory of the rows before
   * it, page by page.
   *
   * @return false after the last row
   */
  boolean next() throws IOException {
    if (left == 0 && (reader != null || !nextPage())) {
      return nextSpilled();
    }
    left--;
    hashAt -= Long.BYTES;
    rowHash = Platform.getLong(base, hashAt);
    rowBase = base;
    rowBytes = (int) Platform.getLong(base, at);
    rowOffset = at + Long.BYTES;
    at = rowOffset + rowBytes;
    return true;
  }

  private boolean nextPage() throws IOException {
    if (!emitting) {
      sealPage();
      unread.addAll(spills);
      emitting = true;
    }
    context.killTaskIfInterrupted();
    if (page != null) {
      // Without this object's lock: a thread that spills holds the lock of the memory manager.
      freePage(page);
      page = null;
    }
    Page full = poll(pages);
    if (full != null) {
      open(full.block(), full.rows());
    }
    return full != null;
  }

  private synchronized <T> T poll(Deque<T> queue) {
    return queue.poll();
  }

  private boolean nextSpilled() throws IOException {
    while (reader == null || !reader.hasNext()) {
      UnsafeSorterSpillWriter spill = poll(unread);
      if (spill == null) {
        return false;
      }
      reader = open(spill);
    }
    reader.loadNext();
    rowHash = reader.getKeyPrefix();
    rowBase = reader.getBaseObject();
    rowOffset = reader.getBaseOffset();
    rowBytes = reader.getRecordLength();
    return true;
  }

  /** The hash of the current row. */
  long hash() {
    return rowHash;
  }

  /** Makes a row object point to the current row. */
  void point(UnsafeRow row) {
    row.pointTo(rowBase, rowOffset, rowBytes);
  }

  /** Writes all rows to disk that are in memory. Must not be called by {@link #forEachHash}. */
  void spillAll() throws IOException {
    sealPage();
    long unused = spillPages();
  }

  /**
   * Called by the memory manager. Frees memory if this buffer asks for more itself, or if its rows
   * are being returned.
   */
  @Override
  public long spill(long bytes, MemoryConsumer trigger) throws IOException {
    return !scanning && (trigger == this || emitting) ? spillPages() : 0;
  }

  private synchronized long spillPages() throws IOException {
    int count = pages.stream().mapToInt(Page::rows).reduce(0, Math::addExact);
    if (count == 0) {
      return 0;
    }
    ShuffleWriteMetrics written = new ShuffleWriteMetrics();
    UnsafeSorterSpillWriter spill =
        new UnsafeSorterSpillWriter(
            SparkEnv.get().blockManager(), SPILL_BUFFER_BYTES, written, count);
    spills.add(spill);
    for (Page full : pages) {
      write(full, spill);
    }
    spill.close();
    if (emitting) {
      unread.add(spill);
    }
    long freed = freePages();
    context.taskMetrics().incMemoryBytesSpilled(freed);
    context.taskMetrics().incDiskBytesSpilled(written.bytesWritten());
    return freed;
  }

  private static void write(Page full, UnsafeSorterSpillWriter spill) throws IOException {
    Object source = full.block().getBaseObject();
    long from = full.block().getBaseOffset();
    long hashes = from + full.block().size() / Long.BYTES * Long.BYTES;
    for (int row = 0; row < full.rows(); row++) {
      int bytes = (int) Platform.getLong(source, from);
      hashes -= Long.BYTES;
      spill.write(source, from + Long.BYTES, bytes, Platform.getLong(source, hashes));
      from += Long.BYTES + bytes;
    }
  }

  private long freePages() {
    long freed = 0;
    for (Page full = pages.poll(); full != null; full = pages.poll()) {
      freed += full.block().size();
      freePage(full.block());
    }
    return freed;
  }

  /** Frees memory and files. Idempotent. */
  @Override
  public void close() {
    if (page != null) {
      freePage(page);
      page = null;
      left = 0;
    }
    closeReader();
    List<Page> unneeded;
    List<UnsafeSorterSpillWriter> files;
    synchronized (this) {
      unneeded = List.copyOf(pages);
      files = List.copyOf(spills);
      pages.clear();
      spills.clear();
      unread.clear();
    }
    // Without this object's lock: a thread that spills holds the lock of the memory manager.
    unneeded.forEach(full -> freePage(full.block()));
    for (UnsafeSorterSpillWriter spill : files) {
      boolean unused = spill.getFile().delete();
    }
  }

  /** A reader closes itself only after its last row. */
  private void closeReader() {
    if (reader != null) {
      try {
        reader.close();
      } catch (IOException e) {
        // Nothing more is read from it, and the file is deleted next.
      }
      reader = null;
    }
  }
}
