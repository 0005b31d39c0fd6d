package io.weft.spark.columns;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedUnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Converts rows to Spark's binary rows, which are equal if their values are. */
final class BinaryRows {
  private final Seq<Expression> columns;

  BinaryRows(StructType schema) {
    List<Expression> references = new ArrayList<>();
    for (int i = 0; i < schema.length(); i++) {
      references.add(new BoundReference(i, schema.fields()[i].dataType(), true));
    }
    columns = CollectionConverters.asScala(references).toSeq();
  }

  UnsafeRow of(InternalRow row) {
    // A new projection each time, because a reused one keeps bytes of the previous row for some
    // nulls.
    return InterpretedUnsafeProjection.createProjection(columns).apply(row);
  }

  List<UnsafeRow> of(List<InternalRow> rows) {
    return rows.stream().map(this::of).toList();
  }

  List<UnsafeRow> of(ColumnarBatch batch) {
    List<UnsafeRow> rows = new ArrayList<>();
    Iterator<InternalRow> iterator = batch.rowIterator();
    while (iterator.hasNext()) {
      rows.add(of(iterator.next()));
    }
    return rows;
  }
}
