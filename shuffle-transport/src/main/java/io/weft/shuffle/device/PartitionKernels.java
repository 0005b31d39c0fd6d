package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;
import java.util.List;

/** The kernels of {@code src/main/cuda/partition.cu} on one device. Thread-safe. */
final class PartitionKernels implements AutoCloseable {
  private final CudaModule module;
  private final CountingKernels counting;
  private final PackingKernels packing;

  private PartitionKernels(CudaModule module) {
    this.module = module;
    this.counting = new CountingKernels(module);
    this.packing = new PackingKernels(module);
  }

  static PartitionKernels load(CudaDevice device) {
    CudaModule module = CudaModule.load(device, "partition");
    try {
      return new PartitionKernels(module);
    } catch (RuntimeException e) {
      module.close();
      throw e;
    }
  }

  CountingKernels counting() {
    return counting;
  }

  PackingKernels packing() {
    return packing;
  }

  /** Keeps the kernels loaded until the event has ended, even if this is closed earlier. */
  void usedUntil(Event event) {
    module.usedUntil(event);
  }

  /** Closes the kernels; none is launched any more. */
  @Override
  public void close() {
    module.close();
  }

  /**
   * The kernels that fill partitions, with their arguments: those of {@code
   * src/main/cuda/partition_pack.h}. Callers must check addresses. Thread-safe; a stream is used by
   * one thread at a time.
   */
  static final class PackingKernels {
    private static final int PACKING_BYTES = 32;
    private static final int ROWS_BYTES = 24;
    private static final int ONE_COLUMN = PACKING_BYTES + ROWS_BYTES + 8 + KernelColumn.BYTES;
    private static final int COLUMNS =
        PACKING_BYTES + ROWS_BYTES + 8 + KernelColumn.MAX_COLUMNS * KernelColumn.BYTES;

    /** Bytes that a warp copies at a time. */
    private static final int STRING_CHUNK = 1024;

    /** The threads of a block that packs a tile. */
    private static final int RUN_THREADS = 512;

    /** Bytes that a thread copies at a time. */
    private static final long LARGEST_UNIT = 16;

    private final CudaKernel clear;
    private final CudaKernel packValidity;
    private final CudaKernel packValues;
    private final CudaKernel packRuns;
    private final CudaKernel packRows;
    private final CudaKernel packOffsets;
    private final CudaKernel packBytes;

    PackingKernels(CudaModule module) {
      this.clear = module.kernel("weft_clear", COLUMNS - ROWS_BYTES);
      this.packValidity = module.kernel("weft_pack_validity", COLUMNS);
      this.packValues = module.kernel("weft_pack_values", COLUMNS);
      this.packRuns = module.kernel("weft_pack_runs", COLUMNS);
      this.packRows = module.kernel("weft_pack_rows", ONE_COLUMN);
      this.packOffsets = module.kernel("weft_pack_offsets", ONE_COLUMN);
      this.packBytes = module.kernel("weft_pack_bytes", ONE_COLUMN);
    }

    /** The places of the partitions; see partition_pack.h. */
    record Packing(long run, long places, long starts, long partitions) {
      private KernelArguments putInto(KernelArguments arguments) {
        return arguments.putLong(run).putLong(places).putLong(starts).putLong(partitions);
      }
    }

    /**
     * Sets the memory that no row writes to zero, for at most {@link KernelColumn#MAX_COLUMNS}
     * columns.
     */
    void clear(CudaStream stream, Packing packing, List<KernelColumn> columns) {
      KernelArguments arguments = packing.putInto(clear.arguments()).putLong(columns.size());
      KernelColumn.put(arguments, columns);
      KernelLaunches.forEach(
          stream, clear, columns.size() * packing.partitions() * KernelLaunches.WARP, arguments);
    }

    /** The rows that a launch reads, by two arrays of numbers of 4 bytes. */
    record Rows(long keys, long places, long count) {
      private KernelArguments putInto(KernelArguments arguments) {
        return arguments.putLong(keys).putLong(places).putLong(count);
      }
    }

    /**
     * Packs the validity of at most {@link KernelColumn#MAX_COLUMNS} columns.
     *
     * @param sorted partitions and rows in the order of the partitions
     */
    void packValidity(CudaStream stream, Packing packing, Rows sorted, List<KernelColumn> columns) {
      KernelLaunches.forEach(
          stream, packValidity, sorted.count(), arguments(packValidity, packing, sorted, columns));
    }

    /**
     * Packs narrow values of at most {@link KernelColumn#MAX_COLUMNS} columns.
     *
     * @param rows partitions and positions in the order of the rows
     */
    void packValues(CudaStream stream, Packing packing, Rows rows, List<KernelColumn> columns) {
      KernelLaunches.forEach(
          stream, packValues, rows.count(), arguments(packValues, packing, rows, columns));
    }

    /**
     * Equals {@link #packValues} after a sort of one pass, but writes values of a partition
     * together.
     *
     * @param tiles the first positions of digits by tile, and rows in the order of the partitions
     */
    void packRuns(CudaStream stream, Packing packing, Rows tiles, List<KernelColumn> columns) {
      KernelLaunches.perTile(
          stream,
          packRuns,
          RUN_THREADS,
          tiles.count(),
          arguments(packRuns, packing, tiles, columns));
    }

    private static KernelArguments arguments(
        CudaKernel kernel, Packing packing, Rows rows, List<KernelColumn> columns) {
      KernelArguments arguments = rows.putInto(packing.putInto(kernel.arguments()));
      KernelColumn.put(arguments.putLong(columns.size()), columns);
      return arguments;
    }

    /** Packs wide values of one column. */
    void packRows(CudaStream stream, Packing packing, Rows rows, KernelColumn column) {
      long unit = Math.min(LARGEST_UNIT, Long.lowestOneBit(column.bytes()));
      KernelArguments arguments = rows.putInto(packing.putInto(packRows.arguments()));
      KernelColumn.put(arguments.putLong(unit), List.of(column));
      KernelLaunches.forEach(stream, packRows, rows.count() * (column.bytes() / unit), arguments);
    }

    /**
     * Strings in the order of the partitions.
     *
     * @param sums of the lengths before each sorted row
     */
    record SortedStrings(Rows rows, long sums) {}

    /** Packs the offsets and bytes of one column. */
    void packStrings(
        CudaStream stream, Packing packing, SortedStrings sorted, KernelColumn column) {
      long chunks = (column.bytes() + STRING_CHUNK - 1) / STRING_CHUNK;
      long offsets = sorted.rows().count() + packing.partitions();
      KernelLaunches.forEach(
          stream, packOffsets, offsets, strings(packOffsets, packing, sorted, column));
      KernelLaunches.forEach(
          stream,
          packBytes,
          chunks * KernelLaunches.WARP,
          strings(packBytes, packing, sorted, column));
    }

    private static KernelArguments strings(
        CudaKernel kernel, Packing packing, SortedStrings sorted, KernelColumn column) {
      KernelArguments arguments = sorted.rows().putInto(packing.putInto(kernel.arguments()));
      KernelColumn.put(arguments.putLong(sorted.sums()), List.of(column));
      return arguments;
    }
  }

  /**
   * The kernels that compute the size of each partition, with their arguments: those of {@code
   * partition_hash.h} and {@code partition_sort.h} in {@code src/main/cuda}. Callers must check
   * addresses. Thread-safe; a stream is used by one thread at a time.
   */
  static final class CountingKernels {
    static final int DIGITS = 256;

    private final CudaKernel hash;
    private final CudaKernel count;
    private final CudaKernel sort;
    private final List<CudaKernel> scan;
    private final CudaKernel starts;
    private final CudaKernel lengths;
    private final CudaKernel bytes;

    CountingKernels(CudaModule module) {
      this.hash = module.kernel("weft_hash", 32 + KernelColumn.MAX_COLUMNS * KernelColumn.BYTES);
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
     * Adds at most {@link KernelColumn#MAX_COLUMNS} columns to the hashes of rows.
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
      KernelLaunches.forEach(stream, hash, rows, arguments);
    }

    /** Counts digits by tile. */
    void count(
        CudaStream stream, long keys, long counts, long faults, long rows, int shift, int most) {
      KernelArguments arguments = count.arguments().putLong(keys).putLong(counts).putLong(faults);
      arguments.putLong(rows).putLong(KernelLaunches.tiles(rows)).putInt(shift).putInt(most);
      KernelLaunches.perTile(stream, count, rows, arguments);
    }

    /** One pass of the sort; see partition_sort.h. */
    record SortPass(
        long keys, long order, long counts, long toKeys, long toOrder, long positions) {}

    void sort(CudaStream stream, SortPass pass, long rows, int shift) {
      KernelArguments arguments = sort.arguments().putLong(pass.keys()).putLong(pass.order());
      arguments.putLong(pass.counts()).putLong(pass.toKeys()).putLong(pass.toOrder());
      arguments
          .putLong(pass.positions())
          .putLong(rows)
          .putLong(KernelLaunches.tiles(rows))
          .putLong(shift);
      KernelLaunches.perTile(stream, sort, rows, arguments);
    }

    /** Replaces each value by the sum of all values before it. */
    void scan(CudaStream stream, long values, long sums, long items) {
      for (int i = 0; i < scan.size(); i++) {
        CudaKernel kernel = scan.get(i);
        KernelArguments arguments = kernel.arguments().putLong(values).putLong(sums).putLong(items);
        KernelLaunches.perTile(stream, kernel, i == 1 ? Math.min(items, 1) : items, arguments);
      }
    }

    void starts(CudaStream stream, long keys, long firsts, long rows, long partitions) {
      KernelArguments arguments = starts.arguments().putLong(keys).putLong(firsts);
      arguments.putLong(rows).putLong(partitions);
      KernelLaunches.forEach(stream, starts, partitions + 1, arguments);
    }

    void lengths(
        CudaStream stream, long order, long to, long faults, long rows, KernelColumn column) {
      KernelArguments arguments = lengths.arguments().putLong(order).putLong(to).putLong(faults);
      KernelColumn.put(arguments.putLong(rows), List.of(column));
      KernelLaunches.forEach(stream, lengths, rows + 1, arguments);
    }

    void bytes(CudaStream stream, long firsts, long sums, long to, long partitions) {
      KernelArguments arguments = bytes.arguments().putLong(firsts).putLong(sums);
      KernelLaunches.forEach(stream, bytes, partitions, arguments.putLong(to).putLong(partitions));
    }
  }
}
