package io.weft.spark.sql;

import io.weft.spark.compat.ScalaInterop;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.RowToColumnarExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Returns the rows of its child and declares all strings with the default collation. */
public final class PlainStringsExec extends SparkPlan {
  private final SparkPlan child;

  /** Spark calls this constructor by reflection to copy the node. */
  public PlainStringsExec(SparkPlan child) {
    this.child = child;
  }

  @Override
  public Seq<Attribute> output() {
    List<Attribute> output = new ArrayList<>();
    for (Attribute column : CollectionConverters.asJava(child.output())) {
      boolean isString = column.dataType() instanceof StringType;
      output.add(isString ? column.withDataType(DataTypes.StringType) : column);
    }
    return ScalaInterop.seq(output);
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return child.execute();
  }

  @Override
  public Seq<SparkPlan> children() {
    return ScalaInterop.seq(child);
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new PlainStringsExec(children.apply(0));
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return child;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof PlainStringsExec;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PlainStringsExec same && same.child.equals(child);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  /**
   * Converts a node's output to batches on the host. Spark's conversion does not support strings
   * with a collation, although their bytes have the same format. This class declares them as plain
   * strings. Stateless.
   */
  static final class RowBatches {
    private RowBatches() {}

    /**
     * Returns the node's batches, or converts its rows to batches. The calling thread needs no
     * active session.
     */
    static RDD<ColumnarBatch> of(SparkPlan node) {
      return node.supportsColumnar()
          ? node.executeColumnar()
          : node.session()
              .withActive(() -> new RowToColumnarExec(new PlainStringsExec(node)))
              .executeColumnar();
    }
  }
}
