package io.weft.table;

import io.weft.device.cuda.CudaStream;
import io.weft.table.PartitionKernels.Column;
import io.weft.table.PartitionKernels.Packing;
import io.weft.table.PartitionKernels.SortedStrings;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** The launches that fill partitions, behind those of {@link PartitionCounting}. Stateless. */
final class PartitionPacking {
  private static final int WIDEST_VALUE = 16;

  private final PartitionKernels kernels;
  private final PartitionRequest request;
  private final PartitionScratch scratch;

  PartitionPacking(PartitionKernels kernels, PartitionRequest request, PartitionScratch scratch) {
    this.kernels = kernels;
    this.request = request;
    this.scratch = scratch;
  }

  /** All of it. */
  void enqueue(CudaStream stream, Packing to) {
    inBatches(toClear(), batch -> kernels.clear(stream, to, batch));
    long ids = request.ids(scratch);
    long positions = scratch.positions();
    int rows = request.rows();
    inBatches(values(), batch -> kernels.packValues(stream, to, ids, positions, rows, batch));
    for (Column column : request.columns()) {
      if (isWide(column) && column.bytes() > 0) {
        kernels.packRows(stream, to, ids, positions, rows, column);
      }
    }
    for (int i = 0; i < request.strings().size(); i++) {
      SortedStrings sorted =
          new SortedStrings(scratch.sortedKeys(), scratch.sortedOrder(), scratch.lengths(i), rows);
      kernels.packStrings(stream, to, sorted, request.strings().get(i));
    }
  }

  private static void inBatches(List<Column> columns, Consumer<List<Column>> launch) {
    for (int done = 0; done < columns.size(); done += PartitionKernels.MOST_COLUMNS) {
      int end = Math.min(done + PartitionKernels.MOST_COLUMNS, columns.size());
      launch.accept(columns.subList(done, end));
    }
  }

  /** Of strings the kernel asks how many bytes each partition has of them. */
  private List<Column> toClear() {
    List<Column> clear = new ArrayList<>();
    int string = 0;
    for (Column column : request.columns()) {
      clear.add(
          column.kind().isString() ? column.withOffsets(scratch.stringBytes(string++)) : column);
    }
    return clear;
  }

  /** Narrow values with their validity; of all others the validity, where there is one. */
  private List<Column> values() {
    List<Column> values = new ArrayList<>();
    for (Column column : request.columns()) {
      boolean isElsewhere = column.kind().isString() || isWide(column);
      if (!isElsewhere) {
        values.add(column);
      } else if (column.validity() != 0) {
        values.add(column.withBytes(0));
      }
    }
    return values;
  }

  private static boolean isWide(Column column) {
    long width = column.bytes();
    return !column.kind().isString() && (Long.bitCount(width) != 1 || width > WIDEST_VALUE);
  }
}
