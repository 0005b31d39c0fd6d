package io.weft.spark.sql;

import io.weft.shuffle.device.DeviceTable;
import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.gpu.DeviceBatch;
import io.weft.spark.gpu.DeviceExchange;
import io.weft.spark.gpu.DeviceFunction;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.sql.DeviceRoute.DeviceBatchSource;
import io.weft.spark.sql.MapOnDevice.MappedTables;
import io.weft.spark.sql.PlainStringsExec.RowBatches;
import java.util.Objects;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/** Runs a user's function on each batch, on the GPU of its executor. */
public final class DeviceMapExec extends SparkPlan implements DeviceBatchSource {
  private final Seq<Attribute> output;
  private final MappedTables tables;
  private final SparkPlan child;

  /** Spark calls this constructor by reflection to copy the node. */
  public DeviceMapExec(Seq<Attribute> output, MappedTables tables, SparkPlan child) {
    this.output = output;
    this.tables = tables;
    this.child = child;
  }

  SparkPlan child() {
    return child;
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public boolean supportsColumnar() {
    return true;
  }

  @Override
  public RDD<ColumnarBatch> doExecuteColumnar() {
    return mapped(RowBatches.of(child), child.schema(), tables.made(), tables.function());
  }

  /** Static, so that the plan is not serialized with the tasks. */
  private static RDD<ColumnarBatch> mapped(
      RDD<ColumnarBatch> input, StructType from, StructType to, DeviceFunction function) {
    return NarrowRDD.over(
        input,
        ColumnarBatch.class,
        batches -> {
          DeviceExchange device = ExecutorGpu.current().exchange();
          return Results.of(DeviceInput.of(batches, from, device), device, to, function);
        });
  }

  /** The results of the function. Each is valid until the next one is requested. */
  private static final class Results extends AbstractIterator<ColumnarBatch> {
    private final Iterator<DeviceInput.Batch> input;
    private final DeviceExchange device;
    private final DeviceFunction function;
    private final DeviceWork work;
    private ColumnarBatch current;

    private Results(
        Iterator<DeviceInput.Batch> input,
        DeviceExchange device,
        DeviceFunction function,
        DeviceWork work) {
      this.input = input;
      this.device = device;
      this.function = function;
      this.work = work;
    }

    /** Creates the results of the running task. */
    static Results of(
        Iterator<DeviceInput.Batch> input,
        DeviceExchange device,
        StructType schema,
        DeviceFunction function) {
      TaskContext context = TaskContext.get();
      String name = "task-%d-function".formatted(context.taskAttemptId());
      DeviceWork work = new DeviceWork(device, schema, name, context::killTaskIfInterrupted);
      Results results = new Results(input, device, function, work);
      context.addTaskCompletionListener((TaskCompletionListener) end -> results.close());
      return results;
    }

    @Override
    public boolean hasNext() {
      if (input.hasNext()) {
        return true;
      }
      closeCurrent(); // The task may run for long, and a table in use cannot be spilled.
      return false;
    }

    @Override
    public ColumnarBatch next() {
      closeCurrent();
      DeviceTable batch = input.next().table().table();
      DeviceTable made = made(batch);
      batch.usedUntil(made.ready());
      made.usedUntil(made.ready());
      current = DeviceBatch.columns(device, made, work.schema());
      return current;
    }

    private DeviceTable made(DeviceTable batch) {
      DeviceTable made;
      try {
        made = function.apply(batch, work);
      } catch (RuntimeException e) {
        throw e;
      } catch (Exception e) {
        throw new IllegalStateException("a function on batches of a GPU failed: " + e, e);
      }
      Objects.requireNonNull(made, "a function on batches of a GPU returned no table");
      if (made == batch) {
        throw new IllegalStateException(
            "a function on batches of a GPU returned the batch that it was given: it must create"
                + " a new table");
      }
      return made;
    }

    private void closeCurrent() {
      if (current != null) {
        current.close();
        current = null;
      }
    }

    private void close() {
      closeCurrent();
      work.close();
    }
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
    return new DeviceMapExec(output, tables, children.apply(0));
  }

  @Override
  public int productArity() {
    return 3;
  }

  @Override
  public Object productElement(int index) {
    return switch (index) {
      case 0 -> output;
      case 1 -> tables;
      default -> child;
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof DeviceMapExec;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof DeviceMapExec same
        && same.tables.equals(tables)
        && same.output.equals(output)
        && same.child.equals(child);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }
}
