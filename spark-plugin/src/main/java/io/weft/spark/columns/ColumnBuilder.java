package io.weft.spark.columns;

import io.weft.spark.columns.BuilderContext.Validity;
import io.weft.spark.columns.ChunkFormat.ChunkWriter;
import io.weft.spark.compat.OnHeapArrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * Builds one column of the batches of every partition. Its buffers are allocated from a {@link
 * BufferPool} and have the same content as in a chunk. For one task thread.
 *
 * <p>An append that throws may leave a partial row in a partition; {@link #truncate} removes it.
 */
abstract class ColumnBuilder {
  private final int[] rows;
  private final Validity validity;
  private byte[] mask = new byte[0];

  ColumnBuilder(BuilderContext context) {
    rows = new int[context.partitions()];
    validity = new Validity(context.pool(), context.partitions());
  }

  /** Creates a builder for a column of a layout. */
  static ColumnBuilder of(ColumnLayout layout, BuilderContext context) {
    return switch (layout.form()) {
      case NULL -> new NullBuilder(context);
      case BOOLEAN -> new BooleanBuilder(context);
      case STRING, BINARY, OPAQUE -> new BytesBuilder(layout, context);
      case LIST -> new ListBuilder(layout, context);
      case MAP -> new MapBuilder(layout, context);
      case STRUCT -> new StructBuilder(layout, context);
      case INTERVAL -> new IntervalBuilder(layout, context);
      case VARIANT -> new VariantBuilder(layout, context);
      default -> new FixedBuilder(layout, context);
    };
  }

  /** Number of values of a partition. */
  final int rows(int partition) {
    return rows[partition];
  }

  final Validity validity() {
    return validity;
  }

  /** Counts appended values. */
  final void added(int partition, int count) {
    rows[partition] += count;
  }

  /**
   * Appends the selected values to their partitions.
   *
   * @param parentNulls 1 if the parent struct is null, by position; null if there are no nulls
   */
  abstract void append(ColumnVector vector, Selection selection, byte[] parentNulls);

  /** Appends contiguous values of a vector over a chunk to one partition. */
  abstract void appendRun(BlockColumnVector vector, int start, int count, int partition);

  /** Appends a value of a row or an array. */
  final void append(SpecializedGetters source, int ordinal, int partition) {
    if (source.isNullAt(ordinal)) {
      appendNull(partition);
    } else {
      appendValue(source, ordinal, partition);
    }
  }

  /** Appends all elements of an array. */
  void appendAll(ArrayData array, int partition) {
    int count = array.numElements();
    for (int i = 0; i < count; i++) {
      append(array, i, partition);
    }
  }

  /** Appends a value that is not null. */
  abstract void appendValue(SpecializedGetters source, int ordinal, int partition);

  /** Appends a null. */
  abstract void appendNull(int partition);

  /** Drops all values after the first rows. */
  void truncate(int partition, int keptRows) {
    if (rows[partition] > keptRows) {
      rows[partition] = keptRows;
    }
    validity.truncate(partition, rows[partition]);
  }

  /**
   * Drops all values.
   *
   * @param release whether the buffers are also freed
   */
  void clear(int partition, boolean release) {
    rows[partition] = 0;
    validity.clear(partition, release);
  }

  /** Bytes of the buffers of this node and its children in a chunk. */
  long measure(int partition) {
    return validity.measure(partition, rows[partition]);
  }

  /**
   * Bytes of the values outside their words in packed rows or structs of Spark.
   *
   * @param owners rows or structs that are not null, at most the number of values
   */
  abstract long packedInRows(int partition, int owners);

  /** Bytes of the values outside their slots in packed arrays of Spark. */
  long packedInArrays(int partition) {
    return packedInRows(partition, rows[partition]);
  }

  /** Bytes of a value's slot in a packed array of Spark. */
  int packedSlotBytes() {
    return Long.BYTES;
  }

  /** Whether a value is null. */
  final boolean isNull(int partition, int row) {
    return validity.nulls(partition) > 0 && !Bits.get(validity.address(partition), row);
  }

  /** Bytes of a packed row or struct without values outside their words. */
  static long packedWords(int fields) {
    return UnsafeRow.calculateBitSetWidthInBytes(fields) + 8L * fields;
  }

  /** Rounds bytes up to whole words, as Spark does in packed rows. */
  static long packedBytes(long bytes) {
    return bytes + 7 & -8L;
  }

  /** Writes this node and its children. */
  abstract void write(int partition, ChunkWriter out);

  /** Sets a vector to a partition's values. It is valid until the next append to the partition. */
  abstract void expose(int partition, BlockColumnVector vector);

  /**
   * Finds the nulls among the selected values.
   *
   * @return 1 for a null, by position; null if there are no nulls
   */
  final byte[] nulls(ColumnVector vector, Selection selection, byte[] parentNulls) {
    if (!vector.hasNull()) {
      return parentNulls;
    }
    int count = selection.count();
    int[] picked = selection.rows();
    if (mask.length < count) {
      mask = new byte[Math.max(count, 2 * mask.length)];
    }
    fillMask(vector, picked, count);
    for (int i = 0; parentNulls != null && i < count; i++) {
      mask[i] |= parentNulls[i];
    }
    return mask;
  }

  private void fillMask(ColumnVector vector, int[] picked, int count) {
    byte[] flags = OnHeapArrays.nulls(vector);
    if (flags != null) {
      for (int i = 0; i < count; i++) {
        mask[i] = flags[picked[i]];
      }
    } else {
      for (int i = 0; i < count; i++) {
        mask[i] = (byte) (vector.isNullAt(picked[i]) ? 1 : 0);
      }
    }
  }

  /** Appends the validity of contiguous values of a vector over a chunk. */
  final void appendValidity(BlockColumnVector vector, int start, int count, int partition) {
    if (vector.hasNull()) {
      validity.append(partition, rows[partition], vector.validity(), start, count);
    } else {
      validity.appendValid(partition, rows[partition], count);
    }
  }

  /** Builds columns of structs. */
  static final class StructBuilder extends CompositeBuilder {
    StructBuilder(ColumnLayout layout, BuilderContext context) {
      super(layout, context);
    }

    @Override
    void appendValue(SpecializedGetters source, int ordinal, int partition) {
      InternalRow struct = source.getStruct(ordinal, children());
      for (int i = 0; i < children(); i++) {
        child(i).append(struct, i, partition);
      }
      endValue(partition);
    }
  }

  /** Builds columns of arrays. */
  static final class ListBuilder extends RepeatedBuilder {
    ListBuilder(ColumnLayout layout, BuilderContext context) {
      super(layout, context);
    }

    @Override
    long packedHead() {
      return 0;
    }

    @Override
    void appendElements(ColumnVector vector, int row, int partition) {
      if (child(0) instanceof FixedBuilder elements
          && vector instanceof ContiguousVector tensors
          && tensors.hasTensors()) {
        elements.appendRun(tensors.elements(row), tensors.elementsOfValue(), partition);
      } else {
        child(0).appendAll(vector.getArray(row), partition);
      }
    }

    @Override
    void appendValue(SpecializedGetters source, int ordinal, int partition) {
      child(0).appendAll(source.getArray(ordinal), partition);
      endValue(partition);
    }
  }

  /** Builds columns of maps. */
  static final class MapBuilder extends RepeatedBuilder {
    MapBuilder(ColumnLayout layout, BuilderContext context) {
      super(layout, context);
    }

    /** The size of the keys. */
    @Override
    long packedHead() {
      return Long.BYTES;
    }

    @Override
    void appendElements(ColumnVector vector, int row, int partition) {
      appendEntries(vector.getMap(row), partition);
    }

    @Override
    void appendValue(SpecializedGetters source, int ordinal, int partition) {
      appendEntries(source.getMap(ordinal), partition);
      endValue(partition);
    }

    private void appendEntries(MapData map, int partition) {
      child(0).appendAll(map.keyArray(), partition);
      child(1).appendAll(map.valueArray(), partition);
    }
  }

  /** Builds columns of variants. */
  static final class VariantBuilder extends CompositeBuilder {
    VariantBuilder(ColumnLayout layout, BuilderContext context) {
      super(layout, context);
    }

    @Override
    void appendValue(SpecializedGetters source, int ordinal, int partition) {
      VariantVal value = source.getVariant(ordinal);
      ((BytesBuilder) child(0)).appendValue(value.getValue(), partition);
      ((BytesBuilder) child(1)).appendValue(value.getMetadata(), partition);
      endValue(partition);
    }

    @Override
    long packedInRows(int partition, int owners) {
      BytesBuilder values = (BytesBuilder) child(0);
      BytesBuilder metadata = (BytesBuilder) child(1);
      long bytes = 0;
      for (int row = 0; row < rows(partition); row++) {
        if (!isNull(partition, row)) {
          bytes +=
              packedBytes(4L + values.length(partition, row) + metadata.length(partition, row));
        }
      }
      return bytes;
    }
  }

  /** Builds columns of the null type: counts their values. */
  static final class NullBuilder extends ColumnBuilder {
    NullBuilder(BuilderContext context) {
      super(context);
    }

    @Override
    void append(ColumnVector vector, Selection selection, byte[] parentNulls) {
      for (int group = 0; group < selection.groups(); group++) {
        added(selection.partition(group), selection.from(group + 1) - selection.from(group));
      }
    }

    @Override
    void appendRun(BlockColumnVector vector, int start, int count, int partition) {
      added(partition, count);
    }

    @Override
    void appendValue(SpecializedGetters source, int ordinal, int partition) {
      added(partition, 1);
    }

    @Override
    void appendNull(int partition) {
      added(partition, 1);
    }

    @Override
    long packedInRows(int partition, int owners) {
      return 0;
    }

    @Override
    void write(int partition, ChunkWriter out) {
      out.node(rows(partition), 0);
    }

    @Override
    void expose(int partition, BlockColumnVector vector) {
      vector.point(rows(partition), 0, 0, 0);
    }
  }

  /** Builds columns of calendar intervals. */
  static final class IntervalBuilder extends CompositeBuilder {
    private final Object[] fields = new Object[3];
    private final GenericInternalRow row = new GenericInternalRow(fields);

    IntervalBuilder(ColumnLayout layout, BuilderContext context) {
      super(layout, context);
    }

    @Override
    void append(ColumnVector vector, Selection selection, byte[] parentNulls) {
      if (vector instanceof WritableColumnVector
          || vector instanceof BlockColumnVector
          || vector instanceof ConstantColumnVector) {
        super.append(vector, selection, parentNulls);
      } else {
        appendOneByOne(vector, selection, nulls(vector, selection, parentNulls));
      }
    }

    /** For vectors that store intervals in one buffer and have no children, like Arrow's. */
    private void appendOneByOne(ColumnVector vector, Selection selection, byte[] nulls) {
      int[] rows = selection.rows();
      for (int group = 0; group < selection.groups(); group++) {
        int partition = selection.partition(group);
        for (int i = selection.from(group); i < selection.from(group + 1); i++) {
          if (nulls != null && nulls[i] != 0) {
            appendNull(partition);
          } else {
            append(vector.getInterval(rows[i]), partition);
          }
        }
      }
    }

    @Override
    void appendValue(SpecializedGetters source, int ordinal, int partition) {
      append(source.getInterval(ordinal), partition);
    }

    /** Rows have room for an interval even if it is null. */
    @Override
    long packedInRows(int partition, int owners) {
      return 16L * owners;
    }

    @Override
    long packedInArrays(int partition) {
      return 16L * (rows(partition) - validity().nulls(partition));
    }

    private void append(CalendarInterval value, int partition) {
      fields[0] = value.months;
      fields[1] = value.days;
      fields[2] = value.microseconds;
      for (int i = 0; i < fields.length; i++) {
        child(i).append(row, i, partition);
      }
      endValue(partition);
    }
  }
}
