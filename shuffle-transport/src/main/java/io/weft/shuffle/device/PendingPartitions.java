package io.weft.shuffle.device;

import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.shuffle.device.DevicePartitioner.PartitionRequest;
import io.weft.shuffle.device.PartitionKernels.CountingKernels;
import io.weft.shuffle.device.PartitionKernels.CountingKernels.SortPass;
import io.weft.shuffle.device.PartitionKernels.PackingKernels;
import io.weft.shuffle.device.PartitionKernels.PackingKernels.Packing;
import io.weft.shuffle.device.PartitionKernels.PackingKernels.Rows;
import io.weft.shuffle.device.PartitionKernels.PackingKernels.SortedStrings;
import io.weft.shuffle.device.PartitionedTable.PartitionCounts;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;

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

  /** The sequence of launches that computes the size of each partition. Stateless. */
  static final class PartitionCounting {
    private static final int DIGIT_BITS = 8;

    private final CountingKernels kernels;
    private final PartitionRequest request;
    private final PartitionScratch scratch;

    PartitionCounting(CountingKernels kernels, PartitionRequest request, PartitionScratch scratch) {
      this.kernels = kernels;
      this.request = request;
      this.scratch = scratch;
    }

    /** Enqueues all launches; the results stay on the device. */
    void enqueue(CudaStream stream) {
      stream.clear(scratch.results(), scratch.resultBytes());
      if (request.isHashed()) {
        hash(stream);
      }
      for (int pass = 0; pass < scratch.passes(); pass++) {
        sort(stream, pass);
      }
      int rows = request.rows();
      int partitions = request.partitions();
      kernels.starts(stream, scratch.sortedKeys(), scratch.starts(), rows, partitions);
      for (int i = 0; i < request.strings().size(); i++) {
        KernelColumn column = request.strings().get(i);
        long lengths = scratch.lengths(i);
        kernels.lengths(stream, scratch.sortedOrder(), lengths, scratch.results(), rows, column);
        kernels.scan(stream, lengths, scratch.sums(), rows + 1L);
        kernels.bytes(stream, scratch.starts(), lengths, scratch.stringBytes(i), partitions);
      }
    }

    /**
     * Without keys there is still one launch, which sets the hash of every row to that of no
     * columns.
     */
    private void hash(CudaStream stream) {
      List<KernelColumn> keys = request.keys();
      int done = 0;
      do {
        int end = Math.min(done + KernelColumn.MAX_COLUMNS, keys.size());
        int partitions = end == keys.size() ? request.partitions() : 0;
        List<KernelColumn> batch = keys.subList(done, end);
        kernels.hash(stream, scratch.hashes(), request.rows(), batch, done == 0, partitions);
        done = end;
      } while (done < keys.size());
    }

    private void sort(CudaStream stream, int pass) {
      boolean isFirst = pass == 0;
      boolean isLast = pass == scratch.passes() - 1;
      int rows = request.rows();
      int shift = DIGIT_BITS * pass;
      long keys = isFirst ? request.orderedIds(scratch) : scratch.keysAfter(pass - 1);
      long faults = isFirst ? scratch.results() : 0;
      long counts = CountingKernels.DIGITS * KernelLaunches.tiles(rows);
      kernels.count(stream, keys, scratch.counts(), faults, rows, shift, request.partitions());
      kernels.scan(stream, scratch.counts(), scratch.sums(), counts);
      SortPass sort =
          new SortPass(
              keys,
              isFirst ? request.order() : scratch.orderAfter(pass - 1),
              scratch.counts(),
              scratch.keysAfter(pass),
              scratch.orderAfter(pass),
              isLast ? scratch.positions() : 0);
      kernels.sort(stream, sort, rows, shift);
    }
  }

  /**
   * The sequence of launches that fills partitions, after those of {@link PartitionCounting}.
   * Stateless.
   */
  static final class PartitionPacking {
    private final PackingKernels kernels;
    private final PartitionRequest request;
    private final PartitionScratch scratch;

    PartitionPacking(PackingKernels kernels, PartitionRequest request, PartitionScratch scratch) {
      this.kernels = kernels;
      this.request = request;
      this.scratch = scratch;
    }

    /** Enqueues all launches. */
    void enqueue(CudaStream stream, Packing to) {
      int count = request.rows();
      Rows rows = new Rows(request.ids(scratch), scratch.positions(), count);
      Rows sorted = new Rows(scratch.sortedKeys(), scratch.sortedOrder(), count);
      Rows tiles = new Rows(scratch.counts(), scratch.sortedOrder(), count);
      inBatches(toClear(), batch -> kernels.clear(stream, to, batch));
      inBatches(
          columns(KernelColumn::isNullable),
          batch -> kernels.packValidity(stream, to, sorted, batch));
      inBatches(
          columns(KernelColumn::isNarrow),
          batch -> {
            if (isByTile()) {
              kernels.packRuns(stream, to, tiles, batch);
            } else {
              kernels.packValues(stream, to, rows, batch);
            }
          });
      columns(KernelColumn::isWide).forEach(column -> kernels.packRows(stream, to, rows, column));
      for (int i = 0; i < request.strings().size(); i++) {
        SortedStrings strings = new SortedStrings(sorted, scratch.lengths(i));
        kernels.packStrings(stream, to, strings, request.strings().get(i));
      }
    }

    /** Whether the rows that the sort's only pass took as a tile are neighbours in the table. */
    private boolean isByTile() {
      return scratch.passes() == 1 && request.order() == 0;
    }

    private List<KernelColumn> columns(Predicate<KernelColumn> which) {
      return request.columns().stream().filter(which).toList();
    }

    private static void inBatches(List<KernelColumn> columns, Consumer<List<KernelColumn>> launch) {
      for (int done = 0; done < columns.size(); done += KernelColumn.MAX_COLUMNS) {
        int end = Math.min(done + KernelColumn.MAX_COLUMNS, columns.size());
        launch.accept(columns.subList(done, end));
      }
    }

    /** For a string column, the kernel needs the bytes of each partition. */
    private List<KernelColumn> toClear() {
      List<KernelColumn> clear = new ArrayList<>();
      int string = 0;
      for (KernelColumn column : request.columns()) {
        clear.add(column.isString() ? column.withOffsets(scratch.stringBytes(string++)) : column);
      }
      return clear;
    }
  }
}
