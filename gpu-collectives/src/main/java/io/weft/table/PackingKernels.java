package io.weft.table;

import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;
import java.util.List;

/**
 * The kernels that fill partitions, with their arguments: those of {@code
 * src/main/cuda/partition_pack.h}. Callers must check addresses. Thread-safe; a stream is used by
 * one thread at a time.
 */
final class PackingKernels {
  private static final int PACKING_BYTES = 32;
  private static final int ROWS_BYTES = 24;
  private static final int ONE_COLUMN = PACKING_BYTES + ROWS_BYTES + 8 + KernelColumn.BYTES;
  private static final int COLUMNS =
      PACKING_BYTES + ROWS_BYTES + 8 + KernelColumn.MOST * KernelColumn.BYTES;

  /** Bytes that a warp copies at a time. */
  private static final int STRING_CHUNK = 1024;

  /** Bytes that a thread copies at a time. */
  private static final long LARGEST_UNIT = 16;

  private final CudaKernel clear;
  private final CudaKernel packValidity;
  private final CudaKernel packValues;
  private final CudaKernel packRows;
  private final CudaKernel packOffsets;
  private final CudaKernel packBytes;

  PackingKernels(CudaModule module) {
    this.clear = module.kernel("weft_clear", COLUMNS - ROWS_BYTES);
    this.packValidity = module.kernel("weft_pack_validity", COLUMNS);
    this.packValues = module.kernel("weft_pack_values", COLUMNS);
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

  /** Sets the memory that no row writes to zero, for at most {@link KernelColumn#MOST} columns. */
  void clear(CudaStream stream, Packing packing, List<KernelColumn> columns) {
    KernelArguments arguments = packing.putInto(clear.arguments()).putLong(columns.size());
    KernelColumn.put(arguments, columns);
    Launches.forEach(
        stream, clear, columns.size() * packing.partitions() * Launches.WARP, arguments);
  }

  /** The rows that a launch reads: two arrays of 4 bytes for each row. */
  record Rows(long keys, long places, long count) {
    private KernelArguments putInto(KernelArguments arguments) {
      return arguments.putLong(keys).putLong(places).putLong(count);
    }
  }

  /**
   * Packs the validity of at most {@link KernelColumn#MOST} columns.
   *
   * @param sorted partitions and rows in the order of the partitions
   */
  void packValidity(CudaStream stream, Packing packing, Rows sorted, List<KernelColumn> columns) {
    perRow(stream, packValidity, packing, sorted, columns);
  }

  /**
   * Packs narrow values of at most {@link KernelColumn#MOST} columns.
   *
   * @param rows partitions and positions in the order of the rows
   */
  void packValues(CudaStream stream, Packing packing, Rows rows, List<KernelColumn> columns) {
    perRow(stream, packValues, packing, rows, columns);
  }

  private static void perRow(
      CudaStream stream,
      CudaKernel kernel,
      Packing packing,
      Rows rows,
      List<KernelColumn> columns) {
    KernelArguments arguments = rows.putInto(packing.putInto(kernel.arguments()));
    KernelColumn.put(arguments.putLong(columns.size()), columns);
    Launches.forEach(stream, kernel, rows.count(), arguments);
  }

  /** Packs wide values of one column. */
  void packRows(CudaStream stream, Packing packing, Rows rows, KernelColumn column) {
    long unit = Math.min(LARGEST_UNIT, Long.lowestOneBit(column.bytes()));
    KernelArguments arguments = rows.putInto(packing.putInto(packRows.arguments()));
    KernelColumn.put(arguments.putLong(unit), List.of(column));
    Launches.forEach(stream, packRows, rows.count() * (column.bytes() / unit), arguments);
  }

  /**
   * Strings in the order of the partitions.
   *
   * @param sums of the lengths before each sorted row
   */
  record SortedStrings(Rows rows, long sums) {}

  /** Packs the offsets and bytes of one column. */
  void packStrings(CudaStream stream, Packing packing, SortedStrings sorted, KernelColumn column) {
    long chunks = (column.bytes() + STRING_CHUNK - 1) / STRING_CHUNK;
    long offsets = sorted.rows().count() + packing.partitions();
    Launches.forEach(stream, packOffsets, offsets, strings(packOffsets, packing, sorted, column));
    Launches.forEach(
        stream, packBytes, chunks * Launches.WARP, strings(packBytes, packing, sorted, column));
  }

  private static KernelArguments strings(
      CudaKernel kernel, Packing packing, SortedStrings sorted, KernelColumn column) {
    KernelArguments arguments = sorted.rows().putInto(packing.putInto(kernel.arguments()));
    KernelColumn.put(arguments.putLong(sorted.sums()), List.of(column));
    return arguments;
  }
}
