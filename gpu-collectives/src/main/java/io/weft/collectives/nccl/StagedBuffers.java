package io.weft.collectives.nccl;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.BounceBuffers.Wait;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * The buffers of one operation on the device. Buffers in device memory are used directly; those of
 * the host are copied there and back. Confined to the thread of the stream.
 */
final class StagedBuffers {
  /** A range of host memory and its copy. */
  private record Range(long start, long bytes, CudaMemory copy) {
    boolean covers(TypedBuffer buffer) {
      return buffer.address() >= start && buffer.address() + buffer.bytes() <= start + bytes;
    }

    long at(TypedBuffer buffer) {
      return copy.address() + buffer.address() - start;
    }
  }

  private final CudaStream stream;
  private final CudaMemoryPool pool;
  private final BounceBuffers bounce;
  private final List<Range> ranges = new ArrayList<>();
  private final List<TypedBuffer> written = new ArrayList<>();
  private final List<CudaMemory> memories = new ArrayList<>();

  StagedBuffers(CudaStream stream, CudaMemoryPool pool, BounceBuffers bounce) {
    this.stream = stream;
    this.pool = pool;
    this.bounce = bounce;
  }

  /**
   * Copies the input of an operation. Buffers that overlap, as in place, also overlap in their
   * copies.
   */
  void place(List<TypedBuffer> read, List<TypedBuffer> write, Wait wait) {
    List<TypedBuffer> onHost =
        Stream.concat(read.stream(), write.stream())
            .filter(this::isOnHost)
            .sorted(Comparator.comparingLong(TypedBuffer::address))
            .toList();
    long start = 0;
    long end = 0;
    for (TypedBuffer each : onHost) {
      if (each.address() >= end) {
        add(start, end);
        start = each.address();
      }
      end = Math.max(end, each.address() + each.bytes());
    }
    add(start, end);
    read.stream()
        .filter(this::isOnHost)
        .forEach(each -> bounce.copyToDevice(at(each), each.address(), each.bytes(), wait));
    write.stream().filter(this::isOnHost).forEach(written::add);
  }

  private boolean isOnHost(TypedBuffer buffer) {
    return buffer.count() > 0 && !stream.device().isDeviceMemory(buffer.address());
  }

  private void add(long start, long end) {
    if (end > start) {
      ranges.add(new Range(start, end - start, scratch(end - start)));
    }
  }

  /** More device memory for this operation. */
  CudaMemory scratch(long bytes) {
    CudaMemory memory = pool.take(bytes);
    memories.add(memory);
    return memory;
  }

  /** The device address of a buffer or a part of one; any address for an empty buffer. */
  long at(TypedBuffer buffer) {
    for (Range range : ranges) {
      if (range.covers(buffer)) {
        return range.at(buffer);
      }
    }
    return buffer.address();
  }

  /** Copies the results back to the host. */
  void copyBack(Wait wait) {
    written.forEach(each -> bounce.copyToHost(each.address(), at(each), each.bytes(), wait));
  }

  /** Frees the memory. The stream must have passed its last use. */
  void release() {
    memories.forEach(CudaMemory::close);
  }
}
