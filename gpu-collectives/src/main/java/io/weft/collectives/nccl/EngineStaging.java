package io.weft.collectives.nccl;

import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.Receive;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.BounceBuffers.Wait;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** Manages the staging memory of one engine. Confined to the engine's thread. */
final class EngineStaging implements AutoCloseable {
  private static final int BOUNCE_BUFFERS = 2;
  private static final long BOUNCE_BYTES = 4L << 20;

  private final CudaStream stream;
  private final CudaMemoryPool pool;
  private final CudaMemoryPool pinned;
  private final BounceBuffers bounce;
  private final List<StagedBuffers> inUse = new ArrayList<>();

  EngineStaging(CudaStream stream, long bytes) {
    this.stream = stream;
    this.pool = CudaMemoryPool.open(stream.device(), CudaMemoryPool.Kind.DEVICE, bytes);
    this.pinned =
        CudaMemoryPool.open(
            stream.device(), CudaMemoryPool.Kind.PINNED, BOUNCE_BUFFERS * BOUNCE_BYTES);
    this.bounce = new BounceBuffers(stream, pinned, BOUNCE_BYTES);
  }

  BounceBuffers bounce() {
    return bounce;
  }

  /**
   * Copies the input of operations to the device if it is not there. The copies are in use until
   * {@link #release}.
   */
  StagedBuffers of(List<Operation> operations, int rank, Wait wait) {
    StagedBuffers staged = new StagedBuffers(stream, pool, bounce);
    inUse.add(staged);
    for (Operation each : operations) {
      BufferAccess placement = BufferAccess.of(each, rank);
      staged.place(placement.read(), placement.write(), wait);
    }
    return staged;
  }

  /** Copies the results to the host. */
  void copyBack(Wait wait) {
    inUse.forEach(each -> each.copyBack(wait));
  }

  /** Frees the buffers in use. Call this when the stream has passed the operations. */
  void release() {
    inUse.forEach(StagedBuffers::release);
    inUse.clear();
  }

  /** Discards everything in use after a failure. The stream must be idle. */
  void reset() {
    bounce.reset();
  }

  /** Frees all staging memory. The stream must be idle. */
  @Override
  public void close() {
    bounce.close();
    pinned.close();
    pool.close();
  }

  /**
   * The buffers of an operation that one rank reads and writes.
   *
   * @param read buffers whose content must be on the device before the operation
   * @param write buffers whose content changes
   */
  record BufferAccess(List<TypedBuffer> read, List<TypedBuffer> write) {
    static BufferAccess of(Operation operation, int rank) {
      if (operation instanceof Reduce each) {
        return rooted(each.send(), each.receive(), rank, each.root());
      }
      if (operation instanceof Gather each) {
        return rooted(each.send(), each.receive(), rank, each.root());
      }
      if (operation instanceof Broadcast each) {
        return new BufferAccess(
            rank == each.root() ? List.of(each.send()) : List.of(), List.of(each.receive()));
      }
      if (operation instanceof Scatter each) {
        return new BufferAccess(
            rank == each.root() ? List.of(each.send()) : List.of(), List.of(each.receive()));
      }
      if (operation instanceof RaggedAllToAll each) {
        // Rows that no update covers keep their content.
        return new BufferAccess(List.of(each.send(), each.receive()), List.of(each.receive()));
      }
      return unrooted(operation);
    }

    private static BufferAccess rooted(TypedBuffer send, TypedBuffer receive, int rank, int root) {
      return new BufferAccess(List.of(send), rank == root ? List.of(receive) : List.of());
    }

    private static BufferAccess unrooted(Operation operation) {
      if (operation instanceof AllReduce each) {
        return new BufferAccess(List.of(each.send()), List.of(each.receive()));
      }
      if (operation instanceof AllGather each) {
        return new BufferAccess(List.of(each.send()), List.of(each.receive()));
      }
      if (operation instanceof ReduceScatter each) {
        return new BufferAccess(List.of(each.send()), List.of(each.receive()));
      }
      if (operation instanceof AllToAll each) {
        return new BufferAccess(List.of(each.send()), List.of(each.receive()));
      }
      if (operation instanceof Send each) {
        return new BufferAccess(List.of(each.buffer()), List.of());
      }
      if (operation instanceof Receive each) {
        return new BufferAccess(List.of(), List.of(each.buffer()));
      }
      return new BufferAccess(List.of(), List.of());
    }
  }

  /**
   * The buffers of one operation on the device. Buffers in device memory are used directly; those
   * of the host are copied there and back. Confined to the thread of the stream.
   */
  static final class StagedBuffers {
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
          .forEach(
              each -> bounce.copyToDevice(deviceAddress(each), each.address(), each.bytes(), wait));
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
    long deviceAddress(TypedBuffer buffer) {
      for (Range range : ranges) {
        if (range.covers(buffer)) {
          return range.at(buffer);
        }
      }
      return buffer.address();
    }

    /** Copies the results back to the host. */
    void copyBack(Wait wait) {
      written.forEach(
          each -> bounce.copyToHost(each.address(), deviceAddress(each), each.bytes(), wait));
    }

    /** Frees the memory. The stream must have passed its last use. */
    void release() {
      memories.forEach(CudaMemory::close);
    }
  }
}
