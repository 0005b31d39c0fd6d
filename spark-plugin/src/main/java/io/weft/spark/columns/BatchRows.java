package io.weft.spark.columns;

import io.weft.spark.columns.ColumnLayout.StorageForm;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import scala.Function2;

/**
 * Converts batches to rows. It copies values straight from chunks into Spark's row format, and
 * arrays of numbers in bulk. Spark's own conversion makes an object for each nested value and each
 * long decimal, and virtual calls for each element.
 *
 * <p>It reuses one row object, which is valid until the next row. For one task thread.
 */
public final class BatchRows {
  private final StructType schema;
  private final ColumnarSchema layout;

  /** Null if a column has a type that it does not support. */
  private final RowPacker packer;

  /** Null until it is needed, because its creation generates code. */
  private FieldRows fieldRows;

  /**
   * @param schema of all batches
   */
  public BatchRows(StructType schema) {
    this.schema = schema;
    layout = ColumnarSchema.of(schema);
    packer = RowPacker.supports(layout.columns()) ? new RowPacker(schema.size()) : null;
  }

  /**
   * Whether this conversion pays: the schema has nested columns or long decimals that are copied
   * without objects, or arrays of numbers.
   */
  public static boolean speedsUp(StructType schema) {
    List<ColumnLayout> columns = ColumnarSchema.of(schema).columns();
    return RowPacker.supports(columns)
        ? columns.stream().anyMatch(BatchRows::makesObjects)
        : Arrays.stream(schema.fields())
            .anyMatch(field -> field.dataType() instanceof ArrayType array && width(array) > 0);
  }

  /** Whether Spark's own conversion makes an object for each value. */
  private static boolean makesObjects(ColumnLayout column) {
    return column.form() == StorageForm.DECIMAL128 || !column.children().isEmpty();
  }

  /**
   * Returns the bytes of an element if Spark stores elements in the same fixed-width format; else
   * 0.
   */
  static int width(ArrayType array) {
    StorageForm form = ColumnLayout.of("element", array.elementType()).form();
    return switch (form) {
      case BYTE, SHORT, INT, LONG, FLOAT, DOUBLE -> form.width();
      default -> 0;
    };
  }

  /**
   * The rows of a batch, in its order.
   *
   * @param batch must stay valid while its rows are read
   */
  public Iterator<InternalRow> of(ColumnarBatch batch) {
    ColumnVector[] vectors =
        IntStream.range(0, schema.size()).mapToObj(batch::column).toArray(ColumnVector[]::new);
    if (packer != null && Arrays.stream(vectors).allMatch(BlockColumnVector.class::isInstance)) {
      return packed(
          Arrays.copyOf(vectors, vectors.length, BlockColumnVector[].class), batch.numRows());
    }
    if (fieldRows == null) {
      fieldRows = new FieldRows(schema);
    }
    return fieldRows.of(batch, vectors);
  }

  /**
   * The rows of a chunk with a single batch, in its order.
   *
   * @param address of its first byte; must stay valid while its rows are read
   * @param bytes of the chunk
   * @throws IllegalStateException if the chunk is damaged or has another schema
   */
  public Iterator<InternalRow> ofChunk(long address, long bytes) {
    return of(ChunkView.of(layout, address, bytes, "a new chunk").batch());
  }

  private Iterator<InternalRow> packed(BlockColumnVector[] vectors, int rows) {
    return new Iterator<>() {
      private int next;

      @Override
      public boolean hasNext() {
        return next < rows;
      }

      @Override
      public InternalRow next() {
        return packer.pack(vectors, next++);
      }
    };
  }

  /** Converts rows field by field, with Spark's generated code for their format. */
  private static final class FieldRows {
    private final SpecificInternalRow row;
    private final RowField[] fields;
    private final UnsafeProjection projection;

    FieldRows(StructType schema) {
      row = new SpecificInternalRow(schema);
      fields =
          IntStream.range(0, schema.size())
              .mapToObj(ordinal -> RowField.of(ordinal, schema.apply(ordinal).dataType()))
              .toArray(RowField[]::new);
      projection = UnsafeProjection.create(schema);
    }

    Iterator<InternalRow> of(ColumnarBatch batch, ColumnVector[] vectors) {
      int rows = batch.numRows();
      return new Iterator<>() {
        private int next;

        @Override
        public boolean hasNext() {
          return next < rows;
        }

        @Override
        public InternalRow next() {
          return row(batch, vectors, next++);
        }
      };
    }

    private UnsafeRow row(ColumnarBatch batch, ColumnVector[] vectors, int index) {
      InternalRow source = batch.getRow(index);
      for (int i = 0; i < vectors.length; i++) {
        if (vectors[i].isNullAt(index)) {
          row.setNullAt(i);
        } else {
          fields[i].set(row, vectors[i], source, index);
        }
      }
      return projection.apply(row);
    }
  }

  /**
   * Copies the elements of a list column in bulk into an array of numbers in Spark's format:
   *
   * <pre>
   *   0               8                                  header
   *  +---------------+----------------------------------+-------------------------+
   *  | elements      | a bit each, all 0: none is null  | elements, padded with 0 |
   *  +---------------+----------------------------------+-------------------------+
   * </pre>
   *
   * <p>All arrays use the same memory, one after the other. Not thread-safe.
   */
  static final class ArrayCopy {
    /** Maximum length of a byte array in the JVM, with a margin. */
    private static final long MAX_BYTES = Integer.MAX_VALUE - 15;

    private final UnsafeArrayData array = new UnsafeArrayData();
    private final int width;
    private byte[] bytes = new byte[0];

    /**
     * @param width bytes of an element: 1, 2, 4 or 8
     */
    ArrayCopy(int width) {
      this.width = width;
    }

    /**
     * Copies elements [start, start + count) from an address. None of them is null.
     *
     * @return the array, valid until the next call
     * @throws IllegalArgumentException if the array would be longer than a Java array can be
     */
    UnsafeArrayData copy(long values, int start, int count) {
      int header = UnsafeArrayData.calculateHeaderPortionInBytes(count);
      long length = (long) width * count;
      long size = header + ((length + 7) & -8L);
      if (size > MAX_BYTES) {
        throw new IllegalArgumentException(
            "An array of " + count + " elements of " + width + " bytes is too long for a row");
      }
      reserve((int) size);
      // Clears the last word first, because the padding may have bytes of the previous array.
      Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + size - 8, 0);
      Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET, count);
      for (int word = 8; word < header; word += 8) {
        Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + word, 0);
      }
      Platform.copyMemory(
          null, values + (long) width * start, bytes, Platform.BYTE_ARRAY_OFFSET + header, length);
      array.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET, (int) size);
      return array;
    }

    private void reserve(int size) {
      if (bytes.length < size) {
        bytes = new byte[(int) Math.min(MAX_BYTES, Math.max(64L, 2L * size))];
      }
    }
  }

  /** Sets one field of a row to a non-null value of a column. */
  @FunctionalInterface
  interface RowField {
    /**
     * Sets the field.
     *
     * @param row row to change
     * @param vector the column
     * @param source the row of the batch
     * @param index of the source row
     */
    void set(InternalRow row, ColumnVector vector, InternalRow source, int index);

    /**
     * Returns the setter for a type: bulk copies for arrays of numbers, primitive setters for
     * common numbers, objects for all other types.
     */
    static RowField of(int ordinal, DataType type) {
      if (type instanceof ArrayType array && BatchRows.width(array) > 0) {
        return array(ordinal, BatchRows.width(array), any(ordinal, type));
      }
      if (type instanceof LongType || type instanceof TimestampType) {
        return (row, vector, source, index) -> row.setLong(ordinal, vector.getLong(index));
      }
      if (type instanceof IntegerType || type instanceof DateType) {
        return (row, vector, source, index) -> row.setInt(ordinal, vector.getInt(index));
      }
      if (type instanceof DoubleType) {
        return (row, vector, source, index) -> row.setDouble(ordinal, vector.getDouble(index));
      }
      if (type instanceof FloatType) {
        return (row, vector, source, index) -> row.setFloat(ordinal, vector.getFloat(index));
      }
      return any(ordinal, type);
    }

    private static RowField any(int ordinal, DataType type) {
      Function2<SpecializedGetters, Object, Object> getter = InternalRow.getAccessor(type, false);
      return (row, vector, source, index) -> row.update(ordinal, getter.apply(source, ordinal));
    }

    /** Falls back to Spark for arrays with nulls and for vectors of other classes. */
    private static RowField array(int ordinal, int width, RowField otherwise) {
      ArrayCopy copy = new ArrayCopy(width);
      return (row, vector, source, index) -> {
        if (vector instanceof BlockColumnVector list && !list.getChild(0).hasNull()) {
          int start = list.offset(index);
          int count = list.offset(index + 1) - start;
          row.update(ordinal, copy.copy(list.getChild(0).values(), start, count));
        } else if (vector instanceof ContiguousVector tensors && tensors.hasTensors()) {
          row.update(ordinal, copy.copy(tensors.elements(index), 0, tensors.elementsOfValue()));
        } else {
          otherwise.set(row, vector, source, index);
        }
      };
    }
  }
}
