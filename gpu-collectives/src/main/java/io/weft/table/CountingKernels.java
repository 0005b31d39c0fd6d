package io.weft.table;

import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;
import java.util.List;

/**
 * The kernels that compute the size of each partition, with their arguments: those of {@code
 * partition_hash.h} and {@code partition_sort.h} in {@code src/main/cuda}. Callers must check
 * addresses. Thread-safe; a stream is used by one thread at a time.
 */
final class CountingKernels {
  static final int DIGITS = 256;

  private final CudaKernel hash;
  private final CudaKernel count;
  private final CudaKernel sort;
  private final List<CudaKernel> scan;
  private final CudaKernel starts;
  private final CudaKernel lengths;
  private final CudaKernel bytes;

  CountingKernels(CudaModule module) {
    this.hash = module.kernel("weft_hash", 32 + KernelColumn.MOST * KernelColumn.BYTES);
    this.count = module.kernel("weft_count", 48);
    this.sort = module.kernel("weft_sort", 72);
    this.scan =
        List.of(
            module.kernel("weft_scan_tiles", 24),
            module.kernel("weft_scan_sums", 24),
            module.kernel("weft_scan_values", 24));
    this.starts = module.kernel("weft_starts", 32);
    this.lengths = module.kernel("weft_lengths", 32 + KernelColumn.BYTES);
    this.bytes = module.kernel("weft_bytes", 32);
  }

  /**
   * Adds at most {@link KernelColumn#MOST} columns to the hashes of rows.
   *
   * @param partitions for the last columns, else 0
   */
  void hash(
      CudaStream stream,
      long hashes,
      long rows,
      List<KernelColumn> columns,
      boolean isFirst,
      int partitions) {
    KernelArguments arguments = hash.arguments().putLong(hashes).putLong(rows);
    arguments.putInt(columns.size()).putInt(DevicePartitioner.SPARK_SEED);
    arguments.putInt(isFirst ? 1 : 0).putInt(partitions);
    KernelColumn.put(arguments, columns);
    Launches.forEach(stream, hash, rows, arguments);
  }

  /** Counts digits by tile. */
  void count(
      CudaStream stream, long keys, long counts, long faults, long rows, int shift, int most) {
    KernelArguments arguments = count.arguments().putLong(keys).putLong(counts).putLong(faults);
    arguments.putLong(rows).putLong(Launches.tiles(rows)).putInt(shift).putInt(most);
    Launches.perTile(stream, count, rows, arguments);
  }

  /** One pass of the sort; see partition_sort.h. */
  record SortPass(long keys, long order, long counts, long toKeys, long toOrder, long positions) {}

  void sort(CudaStream stream, SortPass pass, long rows, int shift) {
    KernelArguments arguments = sort.arguments().putLong(pass.keys()).putLong(pass.order());
    arguments.putLong(pass.counts()).putLong(pass.toKeys()).putLong(pass.toOrder());
    arguments.putLong(pass.positions()).putLong(rows).putLong(Launches.tiles(rows)).putLong(shift);
    Launches.perTile(stream, sort, rows, arguments);
  }

  /** Replaces each value by the sum of all values before it. */
  void scan(CudaStream stream, long values, long sums, long items) {
    for (int i = 0; i < scan.size(); i++) {
      CudaKernel kernel = scan.get(i);
      KernelArguments arguments = kernel.arguments().putLong(values).putLong(sums).putLong(items);
      Launches.perTile(stream, kernel, i == 1 ? Math.min(items, 1) : items, arguments);
    }
  }

  void starts(CudaStream stream, long keys, long firsts, long rows, long partitions) {
    KernelArguments arguments = starts.arguments().putLong(keys).putLong(firsts);
    arguments.putLong(rows).putLong(partitions);
    Launches.forEach(stream, starts, partitions + 1, arguments);
  }

  void lengths(
      CudaStream stream, long order, long to, long faults, long rows, KernelColumn column) {
    KernelArguments arguments = lengths.arguments().putLong(order).putLong(to).putLong(faults);
    KernelColumn.put(arguments.putLong(rows), List.of(column));
    Launches.forEach(stream, lengths, rows + 1, arguments);
  }

  void bytes(CudaStream stream, long firsts, long sums, long to, long partitions) {
    KernelArguments arguments = bytes.arguments().putLong(firsts).putLong(sums);
    Launches.forEach(stream, bytes, partitions, arguments.putLong(to).putLong(partitions));
  }
}
