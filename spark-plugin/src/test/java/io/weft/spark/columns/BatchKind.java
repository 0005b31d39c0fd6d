package io.weft.spark.columns;

import io.weft.spark.columns.ColumnLayout.StorageForm;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.vectorized.OffHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The kinds of batches that an operator below the exchange may produce. */
enum BatchKind {
  ON_HEAP {
    @Override
    ColumnarBatch batch(StructType schema, List<InternalRow> rows) {
      return fill(schema, rows, OnHeapColumnVector.allocateColumns(1, schema));
    }
  },
  OFF_HEAP {
    @Override
    ColumnarBatch batch(StructType schema, List<InternalRow> rows) {
      return fill(schema, rows, OffHeapColumnVector.allocateColumns(1, schema));
    }
  },
  FOREIGN {
    @Override
    ColumnarBatch batch(StructType schema, List<InternalRow> rows) {
      ColumnarBatch batch = ON_HEAP.batch(schema, rows);
      ColumnVector[] columns =
          IntStream.range(0, batch.numCols())
              .mapToObj(i -> new ForeignVector(batch.column(i)))
              .toArray(ColumnVector[]::new);
      return new ColumnarBatch(columns, rows.size());
    }
  },
  BLOCK {
    @Override
    ColumnarBatch batch(StructType schema, List<InternalRow> rows) {
      BlockBatch batch = new BlockBatch(schema);
      return batch.fill(rows);
    }
  };

  /** Spark 4.0 has no writable vectors of the null type. */
  static final boolean SPARK_4_0 =
      org.apache.spark.package$.MODULE$.SPARK_VERSION().startsWith("4.0.");

  /** Spark 4.1 has geometry and geography, but no writable vectors of them. */
  private static final boolean SPARK_4_1 =
      org.apache.spark.package$.MODULE$.SPARK_VERSION().startsWith("4.1.");

  /** This kind, or another one if Spark's vectors do not support the schema's types. */
  BatchKind orIfUnfit(StructType schema) {
    if (SPARK_4_1 && contains(schema, layout -> layout.form() == StorageForm.OPAQUE)) {
      return BLOCK;
    }
    if (SPARK_4_0 && contains(schema, layout -> layout.form() == StorageForm.NULL)) {
      return BLOCK;
    }
    // Spark's off-heap vectors do not support arrays of nulls.
    return this == OFF_HEAP && contains(schema, BatchKind::repeatsNulls) ? ON_HEAP : this;
  }

  private static boolean repeatsNulls(ColumnLayout layout) {
    return (layout.form() == StorageForm.LIST || layout.form() == StorageForm.MAP)
        && layout.children().stream().anyMatch(child -> child.form() == StorageForm.NULL);
  }

  private static boolean contains(StructType schema, Predicate<ColumnLayout> wanted) {
    return ColumnarSchema.of(schema).columns().stream().anyMatch(c -> contains(c, wanted));
  }

  private static boolean contains(ColumnLayout layout, Predicate<ColumnLayout> wanted) {
    return wanted.test(layout)
        || layout.children().stream().anyMatch(child -> contains(child, wanted));
  }

  abstract ColumnarBatch batch(StructType schema, List<InternalRow> rows);

  static ColumnarBatch fill(
      StructType schema, List<InternalRow> rows, WritableColumnVector[] columns) {
    StructField[] fields = schema.fields();
    List<ColumnLayout> layouts = new ArrayList<>();
    Arrays.stream(fields).map(VectorFiller::layout).forEach(layouts::add);
    for (InternalRow row : rows) {
      for (int i = 0; i < fields.length; i++) {
        VectorFiller.append(layouts.get(i), row, i, columns[i]);
      }
    }
    return new ColumnarBatch(columns, rows.size());
  }

  /** A batch over builders, like those that a reader gathers. */
  private static final class BlockBatch {
    private final ColumnarSchema schema;
    private final BufferPool pool = BufferPool.borrow();

    BlockBatch(StructType schema) {
      this.schema = ColumnarSchema.of(schema);
    }

    ColumnarBatch fill(List<InternalRow> rows) {
      BuilderContext context = new BuilderContext(pool, 1);
      BlockColumnVector[] vectors = BlockColumnVector.of(schema);
      for (int i = 0; i < vectors.length; i++) {
        ColumnBuilder builder = ColumnBuilder.of(schema.columns().get(i), context);
        for (InternalRow row : rows) {
          builder.append(row, i, 0);
        }
        builder.expose(0, vectors[i]);
      }
      return new ColumnarBatch(vectors, rows.size()) {
        @Override
        public void close() {
          pool.close();
        }
      };
    }
  }
}
