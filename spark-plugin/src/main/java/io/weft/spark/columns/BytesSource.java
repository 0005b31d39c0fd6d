package io.weft.spark.columns;

import io.weft.spark.columns.ColumnLayout.StorageForm;
import io.weft.spark.compat.OnHeapArrays;
import io.weft.spark.compat.OpaqueTypes;
import io.weft.spark.compat.ParquetDictionaries;
import java.util.Arrays;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.ValueVector;
import org.apache.parquet.column.Dictionary;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.execution.vectorized.OffHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Locates the bytes of strings and binary values of a vector, by position of a selection. It
 * creates no object per value if the vector's bytes are contiguous. Reused.
 */
final class BytesSource {
  private static final Object[] NONE = {};

  private final StorageForm form;
  private final OpaqueTypes.Reader opaque;
  private final FixedSource bytes = new FixedSource();
  private final DecodedValues decoded = new DecodedValues();
  private Object base;
  private Object[] bases = NONE;
  private boolean oneBase;
  private long[] offsets = new long[0];
  private int[] lengths = new int[0];

  BytesSource(ColumnLayout layout) {
    form = layout.form();
    opaque = form == StorageForm.OPAQUE ? new OpaqueTypes.Reader(layout.type()) : null;
  }

  /** Returns the array of the value at a position, or null if the value is off-heap. */
  Object base(int position) {
    return oneBase ? base : bases[position];
  }

  /** Returns the array with all values, or null if there are several or the values are off-heap. */
  Object common() {
    return oneBase ? base : null;
  }

  long offset(int position) {
    return offsets[position];
  }

  /** Copies the values at some positions one after the other. */
  void copy(int from, int to, long target) {
    // Local variables, because the JIT compiler assumes that each copy may change the fields.
    Object[] all = oneBase ? null : bases;
    Object common = base;
    long[] starts = offsets;
    int[] sizes = lengths;
    long at = target;
    for (int i = from; i < to; i++) {
      int size = sizes[i];
      BulkCopy.bytes(all == null ? common : all[i], starts[i], at, size);
      at += size;
    }
  }

  int length(int position) {
    return lengths[position];
  }

  /**
   * Locates the values at the given rows. A null has no bytes.
   *
   * @param nulls 1 for a null, by position; null if there are no nulls
   */
  void locate(ColumnVector vector, int[] rows, int count, byte[] nulls) {
    if (offsets.length < count) {
      offsets = new long[rows.length];
      lengths = new int[rows.length];
    }
    if (nulls != null) {
      Arrays.fill(lengths, 0, count, 0);
    }
    oneBase = inOneRun(vector, rows, count, nulls);
    if (!oneBase) {
      oneByOne(vector, rows, count, nulls);
    }
  }

  /** Locates a value of a row or an array at position 0. The value must not be null. */
  void locate(SpecializedGetters row, int ordinal) {
    if (offsets.length == 0) {
      offsets = new long[16];
      lengths = new int[16];
    }
    oneBase = true;
    if (form == StorageForm.STRING) {
      UTF8String value = row.getUTF8String(ordinal);
      set(0, value.getBaseOffset(), value.numBytes());
      base = value.getBaseObject();
    } else {
      locate(form == StorageForm.OPAQUE ? opaque.bytes(row, ordinal) : row.getBinary(ordinal));
    }
  }

  /** Locates the bytes of an array at position 0. */
  void locate(byte[] value) {
    if (offsets.length == 0) {
      offsets = new long[16];
      lengths = new int[16];
    }
    oneBase = true;
    base = value;
    set(0, Platform.BYTE_ARRAY_OFFSET, value.length);
  }

  private boolean inOneRun(ColumnVector vector, int[] rows, int count, byte[] nulls) {
    if (vector instanceof WritableColumnVector writable) {
      return !writable.hasDictionary() && writable(writable, rows, count, nulls);
    }
    if (vector instanceof BlockColumnVector block) {
      offsets(block.offsets(), block.values(), rows, count, nulls);
      return true;
    }
    if (form != StorageForm.OPAQUE && vector.getClass() == ArrowColumnVector.class) {
      return arrow(((ArrowColumnVector) vector).getValueVector(), rows, count, nulls);
    }
    return false;
  }

  private boolean writable(WritableColumnVector vector, int[] rows, int count, byte[] nulls) {
    if (vector.isAllNull() || !bytes.locate(vector.arrayData(), StorageForm.BYTE)) {
      return false;
    }
    base = bytes.base();
    int[] starts = OnHeapArrays.starts(vector);
    int[] sizes = OnHeapArrays.lengths(vector);
    if (starts != null && sizes != null) {
      onHeap(starts, sizes, rows, count, nulls);
      return true;
    }
    for (int i = 0; i < count; i++) {
      if (nulls == null || nulls[i] == 0) {
        int row = rows[i];
        set(i, bytes.offset() + vector.getArrayOffset(row), vector.getArrayLength(row));
      }
    }
    return true;
  }

  private void onHeap(int[] starts, int[] sizes, int[] rows, int count, byte[] nulls) {
    long first = bytes.offset();
    long[] foundOffsets = offsets;
    int[] foundLengths = lengths;
    for (int i = 0; i < count; i++) {
      if (nulls == null || nulls[i] == 0) {
        foundOffsets[i] = first + starts[rows[i]];
        foundLengths[i] = sizes[rows[i]];
      }
    }
  }

  private boolean arrow(ValueVector vector, int[] rows, int count, byte[] nulls) {
    if (vector instanceof BaseVariableWidthVector values) {
      offsets(values.getOffsetBufferAddress(), values.getDataBufferAddress(), rows, count, nulls);
      return true;
    }
    return false;
  }

  private void offsets(long ends, long values, int[] rows, int count, byte[] nulls) {
    base = null;
    for (int i = 0; i < count; i++) {
      if (nulls == null || nulls[i] == 0) {
        long at = ends + 4L * rows[i];
        int start = Platform.getInt(null, at);
        set(i, values + start, Platform.getInt(null, at + 4) - start);
      }
    }
  }

  private void oneByOne(ColumnVector vector, int[] rows, int count, byte[] nulls) {
    if (bases.length < count) {
      bases = new Object[rows.length];
    }
    if (form != StorageForm.OPAQUE
        && vector instanceof WritableColumnVector writable
        && decoded.use(writable)) {
      fromDictionary(writable, rows, count, nulls);
      return;
    }
    for (int i = 0; i < count; i++) {
      if (nulls == null || nulls[i] == 0) {
        one(vector, rows[i], i);
      }
    }
  }

  private void fromDictionary(WritableColumnVector vector, int[] rows, int count, byte[] nulls) {
    WritableColumnVector ids = vector.getDictionaryIds();
    for (int i = 0; i < count; i++) {
      if (nulls == null || nulls[i] == 0) {
        byte[] value = decoded.value(ids.getDictId(rows[i]), vector, rows[i]);
        bases[i] = value;
        set(i, Platform.BYTE_ARRAY_OFFSET, value.length);
      }
    }
  }

  private void one(ColumnVector vector, int row, int position) {
    if (form == StorageForm.STRING) {
      UTF8String value = vector.getUTF8String(row);
      bases[position] = value.getBaseObject();
      set(position, value.getBaseOffset(), value.numBytes());
    } else {
      byte[] value = form == StorageForm.OPAQUE ? opaque.bytes(vector, row) : vector.getBinary(row);
      bases[position] = value;
      set(position, Platform.BYTE_ARRAY_OFFSET, value.length);
    }
  }

  private void set(int position, long offset, int length) {
    offsets[position] = offset;
    lengths[position] = length;
  }

  /** Drops references to the values of the last batch. */
  void forget() {
    base = null;
    if (!oneBase) {
      Arrays.fill(bases, null);
    }
  }

  /** The values of a Parquet dictionary that were needed so far. Spark makes new ones each time. */
  private static final class DecodedValues {
    private Dictionary dictionary;
    private byte[][] values = new byte[0][];

    /** Takes the dictionary of a vector. Returns false if it has none, or one that may change. */
    boolean use(WritableColumnVector vector) {
      Dictionary used = ParquetDictionaries.of(vector);
      if (used != null && used != dictionary) {
        dictionary = used;
        values = new byte[used.getMaxId() + 1][];
      }
      return used != null;
    }

    byte[] value(int id, WritableColumnVector vector, int row) {
      byte[] known = values[id];
      if (known == null) {
        known = vector.getBinary(row);
        values[id] = known;
      }
      return known;
    }
  }

  /**
   * Locates the contiguous memory of a vector of values of fixed width, starting at row 0. Reused;
   * the location is valid until the vector is written to.
   */
  static final class FixedSource {
    private Object base;
    private long offset;

    /** Returns the array with the values, or null if they are off-heap. */
    Object base() {
      return base;
    }

    /** Returns the offset or address of row 0. */
    long offset() {
      return offset;
    }

    /**
     * Locates the values.
     *
     * @return false if they are not contiguous in memory, or do not have the width of the form
     */
    boolean locate(ColumnVector vector, StorageForm form) {
      if (vector instanceof OnHeapColumnVector onHeap) {
        return !onHeap.hasDictionary() && onHeap(onHeap, form);
      }
      if (vector instanceof BlockColumnVector block) {
        return block.form() == form && found(null, block.values());
      }
      if (vector instanceof OffHeapColumnVector offHeap) {
        return !offHeap.hasDictionary()
            && !narrow(offHeap, form)
            && found(null, offHeap.valuesNativeAddress());
      }
      if (vector instanceof ContiguousVector contiguous) {
        long values = contiguous.values(form.width());
        return values != 0 && found(null, values);
      }
      // Subclasses may change what the getters return.
      if (vector.getClass() == ArrowColumnVector.class) {
        return arrow(((ArrowColumnVector) vector).getValueVector(), form);
      }
      return false;
    }

    private boolean onHeap(OnHeapColumnVector vector, StorageForm form) {
      Object array = array(vector, form);
      return array != null && found(array, arrayOffset(form));
    }

    /** Returns the array with the vector's values, or null if there is none of that form. */
    static Object array(OnHeapColumnVector vector, StorageForm form) {
      return switch (form) {
        case BYTE -> OnHeapArrays.bytes(vector);
        case SHORT -> OnHeapArrays.shorts(vector);
        case INT -> OnHeapArrays.ints(vector);
        case LONG, DECIMAL64 -> OnHeapArrays.longs(vector);
        case FLOAT -> OnHeapArrays.floats(vector);
        case DOUBLE -> OnHeapArrays.doubles(vector);
        default -> null;
      };
    }

    private static long arrayOffset(StorageForm form) {
      return switch (form) {
        case BYTE -> Platform.BYTE_ARRAY_OFFSET;
        case SHORT -> Platform.SHORT_ARRAY_OFFSET;
        case INT -> Platform.INT_ARRAY_OFFSET;
        case FLOAT -> Platform.FLOAT_ARRAY_OFFSET;
        case DOUBLE -> Platform.DOUBLE_ARRAY_OFFSET;
        default -> Platform.LONG_ARRAY_OFFSET;
      };
    }

    private static boolean narrow(OffHeapColumnVector vector, StorageForm form) {
      return form == StorageForm.DECIMAL128
          || (form == StorageForm.DECIMAL64 && DecimalType.is32BitDecimalType(vector.dataType()));
    }

    private boolean arrow(ValueVector vector, StorageForm form) {
      return vector instanceof BaseFixedWidthVector values
          && values.getTypeWidth() == form.width()
          && found(null, values.getDataBufferAddress());
    }

    private boolean found(Object where, long at) {
      base = where;
      offset = at;
      return where != null || at != 0;
    }
  }
}
