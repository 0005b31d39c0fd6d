package io.weft.table;

import io.weft.device.cuda.CudaStream;
import io.weft.table.CountingKernels.SortPass;
import java.util.List;

/** The sequence of launches that computes the size of each partition. Stateless. */
final class PartitionCounting {
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
   * Without keys there is still one launch, which sets the hash of every row to that of no columns.
   */
  private void hash(CudaStream stream) {
    List<KernelColumn> keys = request.keys();
    int done = 0;
    do {
      int end = Math.min(done + KernelColumn.MOST, keys.size());
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
    long keys = isFirst ? request.ids(scratch) : scratch.keysAfter(pass - 1);
    long faults = isFirst ? scratch.results() : 0;
    long counts = CountingKernels.DIGITS * Launches.tiles(rows);
    kernels.count(stream, keys, scratch.counts(), faults, rows, shift, request.partitions());
    kernels.scan(stream, scratch.counts(), scratch.sums(), counts);
    SortPass sort =
        new SortPass(
            keys,
            isFirst ? 0 : scratch.orderAfter(pass - 1),
            scratch.counts(),
            scratch.keysAfter(pass),
            scratch.orderAfter(pass),
            isLast ? scratch.positions() : 0);
    kernels.sort(stream, sort, rows, shift);
  }
}
