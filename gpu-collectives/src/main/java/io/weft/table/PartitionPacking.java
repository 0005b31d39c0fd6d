package io.weft.table;

import io.weft.device.cuda.CudaStream;
import io.weft.table.PackingKernels.Packing;
import io.weft.table.PackingKernels.Rows;
import io.weft.table.PackingKernels.SortedStrings;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Predicate;

/**
 * The sequence of launches that fills partitions, after those of {@link PartitionCounting}.
 * Stateless.
 */
final class PartitionPacking {
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
    inBatches(toClear(), batch -> kernels.clear(stream, to, batch));
    inBatches(
        columns(KernelColumn::isNullable),
        batch -> kernels.packValidity(stream, to, sorted, batch));
    inBatches(
        columns(KernelColumn::isNarrow), batch -> kernels.packValues(stream, to, rows, batch));
    columns(KernelColumn::isWide).forEach(column -> kernels.packRows(stream, to, rows, column));
    for (int i = 0; i < request.strings().size(); i++) {
      SortedStrings strings = new SortedStrings(sorted, scratch.lengths(i));
      kernels.packStrings(stream, to, strings, request.strings().get(i));
    }
  }

  private List<KernelColumn> columns(Predicate<KernelColumn> which) {
    return request.columns().stream().filter(which).toList();
  }

  private static void inBatches(List<KernelColumn> columns, Consumer<List<KernelColumn>> launch) {
    for (int done = 0; done < columns.size(); done += KernelColumn.MOST) {
      int end = Math.min(done + KernelColumn.MOST, columns.size());
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
