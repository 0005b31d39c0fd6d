package io.weft.spark.sql;

import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.gpu.DeviceFunction;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Logical node that maps each batch on a GPU with a function. Its output columns are new
 * attributes, so Spark creates a new instance if a query has the node twice. Immutable.
 */
public final class MapOnDevice extends LogicalPlan implements MultiInstanceRelation {
  private final Seq<Attribute> output;
  private final MappedTables tables;
  private final LogicalPlan child;

  /** Spark calls this constructor by reflection to copy the node. */
  public MapOnDevice(Seq<Attribute> output, MappedTables tables, LogicalPlan child) {
    this.output = output;
    this.tables = tables;
    this.child = child;
  }

  MappedTables tables() {
    return tables;
  }

  LogicalPlan child() {
    return child;
  }

  @Override
  public Seq<Attribute> output() {
    return output;
  }

  @Override
  public AttributeSet producedAttributes() {
    return outputSet();
  }

  @Override
  public LogicalPlan newInstance() {
    List<Attribute> columns = new ArrayList<>();
    for (Attribute column : CollectionConverters.asJava(output)) {
      columns.add(column.newInstance());
    }
    return new MapOnDevice(ScalaInterop.seq(columns), tables, child);
  }

  /** All columns, because the function may read all of them. */
  @Override
  public AttributeSet references() {
    return child.outputSet();
  }

  @Override
  public Seq<LogicalPlan> children() {
    return ScalaInterop.seq(child);
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new MapOnDevice(output, tables, children.apply(0));
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
    return other instanceof MapOnDevice;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof MapOnDevice same
        && same.tables.equals(tables)
        && same.output.equals(output)
        && same.child.equals(child);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  /**
   * A function on tables and the schemas of its input and output. The schemas have the shapes of
   * tensors in their metadata, which Spark ignores when it compares plans. Without the schemas
   * here, Spark would reuse rows of one shape for another. Immutable; serialized with the plans of
   * compiled stages.
   *
   * @param given columns of the input tables
   * @param made columns of the output tables
   */
  record MappedTables(DeviceFunction function, StructType given, StructType made)
      implements Serializable {
    /** For displayed plans, whose nodes already list their columns. */
    @Override
    public String toString() {
      return function.toString();
    }
  }
}
