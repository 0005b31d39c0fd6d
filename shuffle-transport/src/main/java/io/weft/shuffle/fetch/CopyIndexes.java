package io.weft.shuffle.fetch;

import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.CopiedOutput;
import io.weft.shuffle.store.CopiedOutput.Head;
import io.weft.shuffle.store.CopyStore;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The indexes of the copies that an executor has read, until their shuffle ends. Each reduce task
 * reads a part of many copies, and each read may be a request to a remote store. Thread-safe.
 */
final class CopyIndexes {
  /** Of the heap. Tasks visit all copies in turn, so further indexes replace none of these. */
  private static final int HEAP_FRACTION = 50;

  private static final int CHUNK_BYTES = 20;

  private final int maxChunks;
  private final Map<Copy, Head> heads = new ConcurrentHashMap<>();
  private final AtomicInteger chunks = new AtomicInteger();

  private record Copy(BlockKey key, String writer) {}

  CopyIndexes() {
    this(
        (int)
            Math.min(
                Integer.MAX_VALUE, Runtime.getRuntime().maxMemory() / HEAP_FRACTION / CHUNK_BYTES));
  }

  /**
   * Starts empty.
   *
   * @param maxChunks of all indexes together; a partition counts as a chunk
   */
  CopyIndexes(int maxChunks) {
    this.maxChunks = maxChunks;
  }

  /** Opens a copy, without a read of its index if that is known. The caller closes it. */
  CopiedOutput open(CopyStore store, BlockKey key, String writer) throws IOException {
    Copy copy = new Copy(key, writer);
    Head known = heads.get(copy);
    if (known != null) {
      return CopiedOutput.open(store, key, writer, known);
    }
    CopiedOutput opened = CopiedOutput.open(store, key, writer);
    keep(copy, opened.head());
    return opened;
  }

  private void keep(Copy copy, Head head) {
    int size = size(head);
    if (chunks.addAndGet(size) > maxChunks || heads.putIfAbsent(copy, head) != null) {
      chunks.addAndGet(-size);
    }
  }

  private static int size(Head head) {
    return head.index().chunks() + head.index().partitions();
  }

  /** Forgets the indexes of a shuffle. Visits all indexes. */
  void removeShuffle(int shuffle) {
    heads
        .keySet()
        .forEach(
            copy -> {
              Head removed = copy.key().shuffleId() == shuffle ? heads.remove(copy) : null;
              if (removed != null) {
                chunks.addAndGet(-size(removed));
              }
            });
  }
}
