package io.weft.spark.sql;

import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.sql.DeviceRoute.DeviceBatchSource;
import io.weft.spark.sql.DeviceRoute.TaskDevice;
import io.weft.spark.sql.PlainStringsExec.RowBatches;
import java.util.Optional;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * Uploads the batches of its child to the GPU of its executor. Without a GPU, batches stay on the
 * host.
 */
public final class DeviceUploadExec extends SparkPlan implements DeviceBatchSource {
  private final SparkPlan child;

  /** Spark calls this constructor by reflection to copy the node. */
  public DeviceUploadExec(SparkPlan child) {
    this.child = child;
  }

  SparkPlan child() {
    return child;
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public Partitioning outputPartitioning() {
    return child.outputPartitioning();
  }

  @Override
  public Seq<SortOrder> outputOrdering() {
    return child.outputOrdering();
  }

  @Override
  public boolean supportsColumnar() {
    return true;
  }

  @Override
  public RDD<ColumnarBatch> doExecuteColumnar() {
    return uploaded(RowBatches.of(child), child.schema());
  }

  /** Static, so that the plan is not serialized with the tasks. */
  private static RDD<ColumnarBatch> uploaded(RDD<ColumnarBatch> input, StructType schema) {
    return NarrowRDD.over(
        input,
        ColumnarBatch.class,
        batches -> {
          Optional<DeviceExchange> device = TaskDevice.find();
          return device.isPresent()
              ? DeviceInput.of(batches, schema, device.get()).map(DeviceInput.Batch::batch)
              : batches;
        });
  }

  /** For callers that request rows from a columnar node. */
  @Override
  public RDD<InternalRow> doExecute() {
    return session().withActive(() -> new ColumnarToRowExec(this)).execute();
  }

  @Override
  public Seq<SparkPlan> children() {
    return ScalaInterop.seq(child);
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new DeviceUploadExec(children.apply(0));
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
    return other instanceof DeviceUploadExec;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof DeviceUploadExec same && same.child.equals(child);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }
}
