package io.weft.table;

import io.weft.device.cuda.CudaStream;
import io.weft.table.PartitionKernels.Column;
import io.weft.table.PartitionKernels.Packing;
import io.weft.table.PartitionKernels.Rows;
import io.weft.table.PartitionKernels.SortedStrings;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;

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
    int count = request.rows();
    Rows rows = new Rows(request.ids(scratch), scratch.positions(), count);
    Rows sorted = new Rows(scratch.sortedKeys(), scratch.sortedOrder(), count);
    inBatches(toClear(), batch -> kernels.clear(stream, to, batch));
    inBatches(
        columns(column -> column.validity() != 0),
        batch -> kernels.packValidity(stream, to, sorted, batch));
    inBatches(
        columns(PartitionPacking::isNarrow), batch -> kernels.packValues(stream, to, rows, batch));
    columns(PartitionPacking::isWide).forEach(column -> kernels.packRows(stream, to, rows, column));
    for (int i = 0; i < request.strings().size(); i++) {
      SortedStrings strings = new SortedStrings(sorted, scratch.lengths(i));
      kernels.packStrings(stream, to, strings, request.strings().get(i));
    }
  }

  private List<Column> columns(Predicate<Column> which) {
    return request.columns().stream().filter(which).toList();
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

  /** Whether one thread copies a value at once. */
  private static boolean isNarrow(Column column) {
    return !column.kind().isString()
        && Long.bitCount(column.bytes()) == 1
        && column.bytes() <= WIDEST_VALUE;
  }

  private static boolean isWide(Column column) {
    return !column.kind().isString() && !isNarrow(column) && column.bytes() > 0;
  }
}
