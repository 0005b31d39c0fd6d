package io.weft.spark.columns;

import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Computes partition ids row by row with generated code of Spark's expression. */
final class RowBatchPartitioner implements BatchPartitioner {
  private final UnsafeProjection projection;

  /**
   * @param partitionId an expression of type int
   * @param output the columns of the batches
   */
  RowBatchPartitioner(Expression partitionId, Seq<Attribute> output) {
    projection =
        UnsafeProjection.create(CollectionConverters.asScala(List.of(partitionId)).toSeq(), output);
  }

  @Override
  public void partitionIds(ColumnarBatch batch, int[] ids) {
    Iterator<InternalRow> rows = batch.rowIterator();
    for (int row = 0; rows.hasNext(); row++) {
      ids[row] = projection.apply(rows.next()).getInt(0);
    }
  }
}
