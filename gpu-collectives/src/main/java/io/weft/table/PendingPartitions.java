package io.weft.table;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.table.PackingKernels.Packing;

/**
 * A partitioning in progress. The device counts the rows and string bytes of each partition; {@link
 * #pack} then allocates exactly that much memory. If it is closed first, the counting ends and
 * nothing is packed. Close it after {@link #pack} too. One thread at a time.
 */
public final class PendingPartitions implements AutoCloseable {
  private final DevicePartitioner partitioner;
  private final CudaLane lane;
  private final PartitionRequest request;
  private final PartitionScratch scratch;
  private final CudaMemory results;

  /** Ends when nothing uses the input any more. */
  private final HostEvent used;

  private Event counted;
  private boolean packed;

  PendingPartitions(
      DevicePartitioner partitioner, CudaLane lane, PartitionRequest request, HostEvent used) {
    this.partitioner = partitioner;
    this.lane = lane;
    this.request = request;
    this.used = used;
    this.scratch =
        new PartitionScratch(
            partitioner.memory(),
            request.rows(),
            request.partitions(),
            request.strings().size(),
            request.isHashed());
    this.results = takeResults();
  }

  private CudaMemory takeResults() {
    try {
      return partitioner.pinned().take(scratch.resultBytes());
    } catch (RuntimeException e) {
      scratch.close();
      throw e;
    }
  }

  /** Enqueues the counting, and the copy of the counts to the host. */
  void start(Event... after) {
    PartitionCounting counting =
        new PartitionCounting(partitioner.kernels().counting(), request, scratch);
    long to = results.address();
    try {
      counted =
          lane.submit(
              "counting the partitions of " + request.layout(),
              () -> {
                counting.enqueue(lane.stream());
                lane.stream().copyToHost(to, scratch.results(), scratch.resultBytes());
              },
              after);
    } catch (RuntimeException e) {
      scratch.close();
      results.close();
      throw e;
    }
    scratch.usedUntil(counted);
    results.usedUntil(counted);
  }

  /** Ends when the counts are on the host. {@link #pack} does not wait after that. */
  public Event counted() {
    return counted;
  }

  /**
   * Waits for the counts, allocates memory and enqueues the packing on the lane of the call. The
   * input table is kept until the packing has ended. If memory was short, it may be called again.
   *
   * @return partitions whose event ends with the packing
   * @throws io.weft.device.EventFailedException if the device failed
   * @throws io.weft.device.EventTimeoutException if the counts did not arrive before the deadline
   * @throws IllegalStateException if it was packed or closed before, memory is short, a partition
   *     number is out of range, or offsets of strings are broken
   */
  public PartitionedTable pack(Deadline deadline) {
    if (packed) {
      throw new IllegalStateException(request.layout() + " was packed, or closed, before");
    }
    counted.await(deadline);
    PartitionCounts counts =
        new PartitionCounts(
            results.address(), request.layout(), request.partitions(), request.strings().size());
    CudaMemory run = partitioner.memory().take(Math.max(TableLayout.ALIGNMENT, counts.bytes()));
    try {
      Event ready = pack(counts, run.address());
      run.usedUntil(ready);
      packed = true;
      return new PartitionedTable(run, counts, ready);
    } catch (RuntimeException e) {
      run.close();
      throw e;
    }
  }

  private Event pack(PartitionCounts counts, long run) {
    int columns = request.columns().size();
    long bytes = Math.max(1L, 8L * columns * request.partitions());
    try (CudaMemory here = partitioner.pinned().take(bytes);
        CudaMemory there = partitioner.memory().take(bytes)) {
      long from = here.address();
      long to = there.address();
      counts.writePlaces(from);
      Packing packing = new Packing(run, to, scratch.starts(), request.partitions());
      PartitionPacking launches =
          new PartitionPacking(partitioner.kernels().packing(), request, scratch);
      Event ready =
          lane.submit(
              "packing the partitions of " + request.layout(),
              () -> {
                CudaStream stream = lane.stream();
                stream.copyToDevice(to, from, bytes);
                launches.enqueue(stream, packing);
              });
      here.usedUntil(ready);
      there.usedUntil(ready);
      scratch.usedUntil(ready);
      ready.whenReleased(used::complete);
      return ready;
    }
  }

  /** Frees the memory of the counting when its uses have ended. */
  @Override
  public void close() {
    scratch.close();
    results.close();
    if (!packed) {
      packed = true;
      counted.whenReleased(used::complete);
    }
  }
}
