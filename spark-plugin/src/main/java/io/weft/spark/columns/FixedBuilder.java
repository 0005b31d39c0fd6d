package io.weft.spark.columns;

import io.weft.spark.columns.BuilderContext.PartitionBuffers;
import io.weft.spark.columns.BytesSource.FixedSource;
import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import io.weft.spark.columns.ColumnLayout.StorageForm;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;

/** Builds columns of values of fixed width. */
final class FixedBuilder extends ColumnBuilder {
  private final StorageForm form;
  private final int width;
  private final PartitionBuffers values;
  private final FixedGetter getter;
  private final BuilderContext.Scratch scratch;
  private final FixedSource source = new FixedSource();

  FixedBuilder(ColumnLayout layout, BuilderContext context) {
    super(context);
    form = layout.form();
    width = form.width();
    values = new PartitionBuffers(context.pool(), context.partitions());
    getter = FixedGetter.of(layout);
    scratch = context.scratch();
  }

  @Override
  void append(ColumnVector vector, Selection selection, byte[] parentNulls) {
    byte[] nulls = nulls(vector, selection, parentNulls);
    if (!source.locate(vector, form)) {
      appendScratch(vector, selection, nulls);
    } else if (selection.hasRuns()) {
      appendRuns(selection);
    } else {
      appendRows(selection);
    }
    for (int group = 0; group < selection.groups(); group++) {
      int partition = selection.partition(group);
      int from = selection.from(group);
      int to = selection.from(group + 1);
      validity().append(partition, rows(partition), nulls, from, to);
      added(partition, to - from);
    }
  }

  private void appendRows(Selection selection) {
    int[] rows = selection.rows();
    Object base = source.base();
    long offset = source.offset();
    for (int group = 0; group < selection.groups(); group++) {
      int from = selection.from(group);
      int to = selection.from(group + 1);
      long target = reserve(selection.partition(group), to - from);
      FixedWidthGather.values(width, base, offset, rows, from, to, target);
    }
  }

  private void appendRuns(Selection selection) {
    for (int group = 0; group < selection.groups(); group++) {
      int count = selection.from(group + 1) - selection.from(group);
      long target = reserve(selection.partition(group), count);
      for (int run = selection.runFrom(group); run < selection.runFrom(group + 1); run++) {
        long from = source.offset() + (long) width * selection.runStart(run);
        long bytes = (long) width * selection.runLength(run);
        BulkCopy.bytes(source.base(), from, target, bytes);
        target += bytes;
      }
    }
  }

  private void appendScratch(ColumnVector vector, Selection selection, byte[] nulls) {
    int count = selection.count();
    long[] gathered = scratch.bytes((long) width * count);
    getter.gather(vector, selection.rows(), count, nulls, gathered, width);
    for (int group = 0; group < selection.groups(); group++) {
      int from = selection.from(group);
      int length = selection.from(group + 1) - from;
      long target = reserve(selection.partition(group), length);
      BulkCopy.bytes(
          gathered,
          Platform.LONG_ARRAY_OFFSET + (long) width * from,
          target,
          (long) width * length);
    }
  }

  @Override
  void appendRun(BlockColumnVector vector, int start, int count, int partition) {
    long target = reserve(partition, count);
    Platform.copyMemory(
        null, vector.values() + (long) width * start, null, target, (long) width * count);
    appendValidity(vector, start, count, partition);
    added(partition, count);
  }

  /** Appends contiguous values, none of them null. */
  void appendRun(long source, int count, int partition) {
    BulkCopy.bytes(null, source, reserve(partition, count), (long) width * count);
    validity().appendValid(partition, rows(partition), count);
    added(partition, count);
  }

  @Override
  void appendAll(ArrayData array, int partition) {
    if (form != StorageForm.DECIMAL128
        && array instanceof UnsafeArrayData unsafe
        && noNulls(unsafe)) {
      int count = unsafe.numElements();
      long from =
          unsafe.getBaseOffset() + UnsafeArrayData.calculateHeaderPortionInBytes((long) count);
      long target = reserve(partition, count);
      BulkCopy.bytes(unsafe.getBaseObject(), from, target, (long) width * count);
      validity().appendValid(partition, rows(partition), count);
      added(partition, count);
    } else {
      super.appendAll(array, partition);
    }
  }

  private static boolean noNulls(UnsafeArrayData array) {
    long words = array.getBaseOffset() + 8;
    for (int word = 0; word < (array.numElements() + 63) / 64; word++) {
      if (Platform.getLong(array.getBaseObject(), words + 8L * word) != 0) {
        return false;
      }
    }
    return true;
  }

  @Override
  void appendValue(SpecializedGetters source, int ordinal, int partition) {
    long target = reserve(partition, 1);
    if (getter.put(source, ordinal, target)) {
      validity().appendValid(partition, rows(partition), 1);
    } else {
      validity().appendNull(partition, rows(partition));
    }
    added(partition, 1);
  }

  @Override
  void appendNull(int partition) {
    Platform.setMemory(reserve(partition, 1), (byte) 0, width);
    validity().appendNull(partition, rows(partition));
    added(partition, 1);
  }

  /** Reserves space for more values and returns its address. */
  private long reserve(int partition, int count) {
    int rows = rows(partition);
    long used = (long) width * rows;
    int sum = BatchTooLargeException.add(rows, count);
    return values.reserve(partition, used, (long) width * sum) + used;
  }

  @Override
  void clear(int partition, boolean release) {
    super.clear(partition, release);
    if (release) {
      values.release(partition);
    }
  }

  @Override
  long measure(int partition) {
    return super.measure(partition) + ChunkFormat.align((long) width * rows(partition));
  }

  /** Rows have room for a wide decimal even if it is null. */
  @Override
  long packedInRows(int partition, int owners) {
    return form == StorageForm.DECIMAL128 ? (long) width * owners : 0;
  }

  /** Arrays have a word for a wide decimal of up to 64 bits, and two for others. */
  @Override
  long packedInArrays(int partition) {
    long bytes = 0;
    for (int row = 0; form == StorageForm.DECIMAL128 && row < rows(partition); row++) {
      if (!isNull(partition, row)) {
        long value = values.address(partition) + 16L * row;
        long sign = Platform.getLong(null, value) >> 63;
        bytes += Platform.getLong(null, value + 8) == sign ? 8 : 16;
      }
    }
    return bytes;
  }

  @Override
  int packedSlotBytes() {
    return Math.min(width, Long.BYTES);
  }

  @Override
  void write(int partition, ChunkWriter out) {
    int rows = rows(partition);
    out.node(validity().nulls(partition), 0);
    validity().write(partition, rows, out);
    out.buffer(values.address(partition), (long) width * rows);
  }

  @Override
  void expose(int partition, BlockColumnVector vector) {
    vector.point(
        validity().nulls(partition), validity().address(partition), 0, values.address(partition));
  }

  /**
   * The inner loops of the scatter. They copy values of fixed width of selected rows to contiguous
   * memory. Rows must be within the source; there is no check.
   */
  static final class FixedWidthGather {
    private FixedWidthGather() {}

    /**
     * Copies the values of selected rows.
     *
     * @param base array of the source, or null if it is off-heap
     * @param offset of row 0
     * @param rows selected rows; copies positions {@code from} (inclusive) to {@code to}
     *     (exclusive)
     */
    static void values(
        int width, Object base, long offset, int[] rows, int from, int to, long target) {
      switch (width) {
        case 1 -> bytes(base, offset, rows, from, to, target);
        case 2 -> shorts(base, offset, rows, from, to, target);
        case 4 -> ints(base, offset, rows, from, to, target);
        case 8 -> longs(base, offset, rows, from, to, target);
        default -> wide(base, offset, rows, from, to, target);
      }
    }

    private static void bytes(Object base, long offset, int[] rows, int from, int to, long target) {
      long at = target;
      for (int i = from; i < to; i++, at++) {
        Platform.putByte(null, at, Platform.getByte(base, offset + rows[i]));
      }
    }

    private static void shorts(
        Object base, long offset, int[] rows, int from, int to, long target) {
      long at = target;
      for (int i = from; i < to; i++, at += 2) {
        Platform.putShort(null, at, Platform.getShort(base, offset + 2L * rows[i]));
      }
    }

    private static void ints(Object base, long offset, int[] rows, int from, int to, long target) {
      long at = target;
      for (int i = from; i < to; i++, at += 4) {
        Platform.putInt(null, at, Platform.getInt(base, offset + 4L * rows[i]));
      }
    }

    private static void longs(Object base, long offset, int[] rows, int from, int to, long target) {
      long at = target;
      for (int i = from; i < to; i++, at += 8) {
        Platform.putLong(null, at, Platform.getLong(base, offset + 8L * rows[i]));
      }
    }

    private static void wide(Object base, long offset, int[] rows, int from, int to, long target) {
      long at = target;
      for (int i = from; i < to; i++, at += 16) {
        long value = offset + 16L * rows[i];
        Platform.putLong(null, at, Platform.getLong(base, value));
        Platform.putLong(null, at + 8, Platform.getLong(base, value + 8));
      }
    }
  }
}
