package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.spark.columns.ChunkFormat.ChunkSource;
import io.weft.spark.columns.PartitionBuilders.ChunkSink;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.unsafe.Platform;

/**
 * Chunks in off-heap memory with the exchange's rules. It detects a chunk that is written beyond
 * its end, committed twice, or read after the second {@code next()}.
 */
final class MemoryChunks implements ChunkSink, AutoCloseable {
  private static final long CANARY = 0x5ca1ab1e0ddba11L;

  /** One committed chunk. */
  record Chunk(long address, long length, int rows) {}

  private final Map<Integer, List<Chunk>> committed = new HashMap<>();
  private final Map<Extent, Long> open = new IdentityHashMap<>();
  private final List<Long> blocks = new ArrayList<>();
  private long maxBytes = BatchTooLargeException.LIMIT;

  /** Sets the bytes of the largest chunk. */
  MemoryChunks upTo(long bytes) {
    maxBytes = bytes;
    return this;
  }

  @Override
  public long maxBytes() {
    return maxBytes;
  }

  @Override
  public Extent allocate(long bytes) {
    assertThat(bytes).isBetween(1L, maxBytes);
    long length = ChunkFormat.align(bytes);
    long address = ChunkFormat.align(allocateBlock(length + 2L * ChunkFormat.ALIGNMENT));
    Platform.setMemory(address, (byte) 0xee, length);
    Platform.putLong(null, address + length, CANARY);
    Extent extent = new Extent(MemoryKind.SHARED_MEMORY, 0, 0, length, address);
    open.put(extent, bytes);
    return extent;
  }

  private long allocateBlock(long bytes) {
    long block = Platform.allocateMemory(bytes);
    blocks.add(block);
    return block;
  }

  @Override
  public void commit(int partition, Extent chunk, long usedBytes, int rows) {
    assertThat(open.remove(chunk)).isEqualTo(usedBytes);
    assertThat(Platform.getLong(null, chunk.address() + chunk.length())).isEqualTo(CANARY);
    committed
        .computeIfAbsent(partition, p -> new ArrayList<>())
        .add(new Chunk(chunk.address(), usedBytes, rows));
  }

  @Override
  public void release(Extent chunk) {
    assertThat(open.remove(chunk)).isNotNull();
  }

  int openChunks() {
    return open.size();
  }

  List<Chunk> of(int partition) {
    return committed.getOrDefault(partition, List.of());
  }

  List<Chunk> all() {
    return committed.values().stream().flatMap(List::stream).toList();
  }

  /** Chunks to read. Their memory is overwritten as soon as reads are no longer allowed. */
  ChunkSource read(List<Chunk> chunks) {
    return new Source(chunks);
  }

  @Override
  public void close() {
    blocks.forEach(Platform::freeMemory);
    blocks.clear();
  }

  private final class Source implements ChunkSource {
    private final List<Chunk> chunks;
    private int next;
    private long address;
    private long previous;
    private boolean closed;

    Source(List<Chunk> chunks) {
      this.chunks = List.copyOf(chunks);
    }

    @Override
    public boolean next() {
      assertThat(closed).isFalse();
      spoil(previous, next - 2);
      previous = address;
      if (next >= chunks.size()) {
        next++;
        return false;
      }
      Chunk chunk = chunks.get(next++);
      address = ChunkFormat.align(allocateBlock(chunk.length() + ChunkFormat.ALIGNMENT));
      Platform.copyMemory(null, chunk.address(), null, address, chunk.length());
      return true;
    }

    private void spoil(long copy, int index) {
      if (copy != 0 && index >= 0 && index < chunks.size()) {
        Platform.setMemory(copy, (byte) 0x77, chunks.get(index).length());
      }
    }

    @Override
    public long address() {
      return address;
    }

    @Override
    public long length() {
      return chunks.get(next - 1).length();
    }

    @Override
    public String describe() {
      return "chunk " + (next - 1) + " of a test";
    }

    @Override
    public void close() {
      closed = true;
      spoil(previous, next - 2);
      spoil(address, next - 1);
    }
  }
}
