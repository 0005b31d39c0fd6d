package io.weft.table;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.table.PackingKernels.Packing;

/**
 * A table that is being partitioned: how many rows and bytes of strings each partition gets is
 * counted on the device, then {@link #pack} takes memory for just that. Closed without it, the
 * counting ends and nothing is packed. Close it after {@link #pack} too. One thread at a time.
 */
public final class PendingPartitions implements AutoCloseable {
  private final DevicePartitioner partitioner;
  private final CudaLane lane;
  private final PartitionRequest request;
  private final PartitionScratch scratch;
  private final CudaMemory results;

  /** Ends when nothing uses what is partitioned any more. */
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

  /** Enqueues the counting, and the copy of what it counted to the host. */
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

  /** Ends when the counts are on the host; {@link #pack} does not wait from then on. */
  public Event counted() {
    return counted;
  }

  /**
   * Waits for the counts, takes memory and enqueues the packing on the lane of the call. The table
   * that is partitioned is kept until that has ended. It may be called again where there was not
   * enough memory.
   *
   * @return partitions whose event ends with the packing
   * @throws io.weft.device.EventFailedException when the device failed
   * @throws io.weft.device.EventTimeoutException when the counts did not come before the deadline
   * @throws IllegalStateException when it was packed or closed before, there is not enough memory,
   *     a partition is out of range, or offsets of strings are broken
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

  /** Gives back what was taken for the counting, when what uses it has ended. */
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
