package io.weft.table;

import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;
import java.util.List;

/**
 * The kernels of {@code src/main/cuda/partition.cu} on one device: what each takes, and how many
 * threads it gets. Addresses and sizes come from {@link PartitionScratch}, which checked them.
 * Thread-safe; a stream is used by one thread at a time.
 */
final class PartitionKernels implements AutoCloseable {
  /** Columns of one launch. */
  static final int MOST_COLUMNS = 64;

  /** Rows of one block that sorts, and values of one that sums up. */
  static final int TILE = 4096;

  static final int DIGITS = 256;

  private static final int THREADS = 256;
  private static final int MOST_BLOCKS = 1 << 13;
  private static final int COLUMN_BYTES = 40;
  private static final int PACKING_BYTES = 32;
  private static final int STRINGS_BYTES = PACKING_BYTES + 32 + COLUMN_BYTES;

  /** Bytes that a warp copies at a time. */
  private static final int STRING_CHUNK = 1024;

  private static final int WARP = 32;

  private final CudaModule module;
  private final CudaKernel hash;
  private final CudaKernel count;
  private final CudaKernel sort;
  private final List<CudaKernel> scan;
  private final CudaKernel starts;
  private final CudaKernel lengths;
  private final CudaKernel bytes;
  private final CudaKernel clear;
  private final CudaKernel packValues;
  private final CudaKernel packRows;
  private final CudaKernel packOffsets;
  private final CudaKernel packBytes;

  PartitionKernels(CudaModule module) {
    this.module = module;
    this.hash = module.kernel("weft_hash", 32 + MOST_COLUMNS * COLUMN_BYTES);
    this.count = module.kernel("weft_count", 48);
    this.sort = module.kernel("weft_sort", 72);
    this.scan =
        List.of(
            module.kernel("weft_scan_tiles", 24),
            module.kernel("weft_scan_sums", 24),
            module.kernel("weft_scan_values", 24));
    this.starts = module.kernel("weft_starts", 32);
    this.lengths = module.kernel("weft_lengths", 32 + COLUMN_BYTES);
    this.bytes = module.kernel("weft_bytes", 32);
    this.clear = module.kernel("weft_clear", PACKING_BYTES + 8 + MOST_COLUMNS * COLUMN_BYTES);
    this.packValues =
        module.kernel("weft_pack_values", PACKING_BYTES + 32 + MOST_COLUMNS * COLUMN_BYTES);
    this.packRows = module.kernel("weft_pack_rows", STRINGS_BYTES);
    this.packOffsets = module.kernel("weft_pack_offsets", STRINGS_BYTES);
    this.packBytes = module.kernel("weft_pack_bytes", STRINGS_BYTES);
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

  /** A column as kernels see it; see partition.h. */
  record Column(long data, long validity, long offsets, long bytes, ColumnKind kind, int number) {
    /** The column of a table. */
    static Column of(DeviceTable table, int number) {
      TableLayout layout = table.layout();
      TableColumn type = layout.columns().get(number);
      boolean isString = type.kind().isString();
      return new Column(
          table.address() + layout.data(number),
          type.nullable() ? table.address() + layout.validity(number) : 0,
          isString ? table.address() + layout.offsets(number) : 0,
          isString ? layout.stringBytes(number) : type.width(),
          type.kind(),
          number);
    }

    /** With other bytes, for kernels that read something else from them. */
    Column withBytes(long other) {
      return new Column(data, validity, offsets, other, kind, number);
    }

    Column withOffsets(long other) {
      return new Column(data, validity, other, bytes, kind, number);
    }

    private void putInto(KernelArguments arguments) {
      arguments.putLong(data).putLong(validity).putLong(offsets).putLong(bytes);
      arguments.putInt(kind.code()).putInt(number);
    }
  }

  /** Where partitions go; see partition_pack.h. */
  record Packing(long run, long places, long starts, long partitions) {
    private KernelArguments putInto(KernelArguments arguments) {
      return arguments.putLong(run).putLong(places).putLong(starts).putLong(partitions);
    }
  }

  private static void put(KernelArguments arguments, List<Column> columns) {
    columns.forEach(column -> column.putInto(arguments));
    arguments.fill();
  }

  private static void forEach(
      CudaStream stream, CudaKernel kernel, long items, KernelArguments arguments) {
    if (items > 0) {
      long blocks = Math.min((items + THREADS - 1) / THREADS, MOST_BLOCKS);
      kernel.launch(stream, (int) blocks, THREADS, arguments);
    }
  }

  /**
   * Takes at most {@link #MOST_COLUMNS} columns into the hashes of rows.
   *
   * @param partitions for the last columns, else 0
   */
  void hash(
      CudaStream stream,
      long hashes,
      long rows,
      List<Column> columns,
      boolean isFirst,
      int partitions) {
    KernelArguments arguments = hash.arguments().putLong(hashes).putLong(rows);
    arguments.putInt(columns.size()).putInt(DevicePartitioner.SPARK_SEED);
    arguments.putInt(isFirst ? 1 : 0).putInt(partitions);
    put(arguments, columns);
    forEach(stream, hash, rows, arguments);
  }

  /** Counts digits by tile. */
  void count(
      CudaStream stream, long keys, long counts, long faults, long rows, int shift, int most) {
    KernelArguments arguments = count.arguments().putLong(keys).putLong(counts).putLong(faults);
    arguments.putLong(rows).putLong(tiles(rows)).putInt(shift).putInt(most);
    perTile(stream, count, rows, arguments);
  }

  /** One pass of the sort; see partition_sort.h. */
  record SortPass(long keys, long order, long counts, long toKeys, long toOrder, long positions) {}

  void sort(CudaStream stream, SortPass pass, long rows, int shift) {
    KernelArguments arguments = sort.arguments().putLong(pass.keys()).putLong(pass.order());
    arguments.putLong(pass.counts()).putLong(pass.toKeys()).putLong(pass.toOrder());
    arguments.putLong(pass.positions()).putLong(rows).putLong(tiles(rows)).putLong(shift);
    perTile(stream, sort, rows, arguments);
  }

  static long tiles(long items) {
    return (items + TILE - 1) / TILE;
  }

  private static void perTile(
      CudaStream stream, CudaKernel kernel, long items, KernelArguments arguments) {
    if (items > 0) {
      kernel.launch(stream, Math.toIntExact(tiles(items)), THREADS, arguments);
    }
  }

  /** Replaces values by the sums of those before. */
  void scan(CudaStream stream, long values, long sums, long items) {
    for (int i = 0; i < scan.size(); i++) {
      CudaKernel kernel = scan.get(i);
      KernelArguments arguments = kernel.arguments().putLong(values).putLong(sums).putLong(items);
      perTile(stream, kernel, i == 1 ? Math.min(items, 1) : items, arguments);
    }
  }

  void starts(CudaStream stream, long keys, long firsts, long rows, long partitions) {
    KernelArguments arguments = starts.arguments().putLong(keys).putLong(firsts);
    arguments.putLong(rows).putLong(partitions);
    forEach(stream, starts, partitions + 1, arguments);
  }

  void lengths(CudaStream stream, long order, long to, long faults, long rows, Column column) {
    KernelArguments arguments = lengths.arguments().putLong(order).putLong(to).putLong(faults);
    put(arguments.putLong(rows), List.of(column));
    forEach(stream, lengths, rows + 1, arguments);
  }

  void bytes(CudaStream stream, long firsts, long sums, long to, long partitions) {
    KernelArguments arguments = bytes.arguments().putLong(firsts).putLong(sums);
    forEach(stream, bytes, partitions, arguments.putLong(to).putLong(partitions));
  }

  /** Zeros what no row writes to, of at most {@link #MOST_COLUMNS} columns. */
  void clear(CudaStream stream, Packing packing, List<Column> columns) {
    KernelArguments arguments = packing.putInto(clear.arguments()).putLong(columns.size());
    put(arguments, columns);
    forEach(stream, clear, columns.size() * packing.partitions() * WARP, arguments);
  }

  /** Packs validity and narrow values of at most {@link #MOST_COLUMNS} columns. */
  void packValues(
      CudaStream stream,
      Packing packing,
      long keys,
      long positions,
      long rows,
      List<Column> columns) {
    KernelArguments arguments = packing.putInto(packValues.arguments()).putLong(keys);
    arguments.putLong(positions).putLong(rows).putLong(columns.size());
    put(arguments, columns);
    forEach(stream, packValues, rows, arguments);
  }

  /** Packs wide values of one column. */
  void packRows(
      CudaStream stream, Packing packing, long keys, long positions, long rows, Column column) {
    long unit = Math.min(16, Long.lowestOneBit(column.bytes()));
    KernelArguments arguments = packing.putInto(packRows.arguments()).putLong(keys);
    put(arguments.putLong(positions).putLong(rows).putLong(unit), List.of(column));
    forEach(stream, packRows, rows * (column.bytes() / unit), arguments);
  }

  /** Sorted rows and the sums of the lengths of their strings. */
  record SortedStrings(long keys, long order, long sums, long rows) {}

  /** Packs the offsets and bytes of one column. */
  void packStrings(CudaStream stream, Packing packing, SortedStrings sorted, Column column) {
    long chunks = (column.bytes() + STRING_CHUNK - 1) / STRING_CHUNK;
    long offsets = sorted.rows() + packing.partitions();
    forEach(stream, packOffsets, offsets, strings(packOffsets, packing, sorted, column));
    forEach(stream, packBytes, chunks * WARP, strings(packBytes, packing, sorted, column));
  }

  private static KernelArguments strings(
      CudaKernel kernel, Packing packing, SortedStrings sorted, Column column) {
    KernelArguments arguments = packing.putInto(kernel.arguments()).putLong(sorted.keys());
    arguments.putLong(sorted.order()).putLong(sorted.sums()).putLong(sorted.rows());
    put(arguments, List.of(column));
    return arguments;
  }

  /** Nothing of this may still run. */
  @Override
  public void close() {
    module.close();
  }
}
