package io.weft.spark.feed;

import io.weft.spark.columns.BlockColumnVector;
import io.weft.spark.columns.ChunkView;
import java.util.List;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.types.StructType;

/**
 * Visits the nodes and buffers of a chunk in the order of an Arrow record batch. Copies nothing.
 * For one thread.
 */
final class ArrowBuffers {
  private final Target target;

  /** Receives the nodes and buffers. */
  interface Target {
    /** Receives the next node, depth first. */
    void node(int values, int nulls);

    /** Receives the validity of a node without nulls; a chunk has no bitmap for such a node. */
    void allValid(int values);

    /** Receives the node's next buffer. */
    void buffer(long address, long bytes);
  }

  private ArrowBuffers(Target target) {
    this.target = target;
  }

  /** Visits all columns. */
  static void walk(StructType schema, Schema arrow, ChunkView chunk, Target target) {
    ArrowBuffers buffers = new ArrowBuffers(target);
    for (int i = 0; i < schema.size(); i++) {
      Field field = arrow.getFields().get(i);
      if (field.getType() instanceof ArrowType.FixedSizeList list) {
        TensorColumn column = TensorColumn.of(schema, i).orElseThrow();
        buffers.tensor(column, chunk.column(i), chunk.rows(), list.getListSize());
      } else {
        buffers.column(field, chunk.column(i), chunk.rows());
      }
    }
  }

  private void tensor(TensorColumn column, BlockColumnVector vector, int rows, int elements) {
    int count = Math.multiplyExact(rows, elements);
    target.node(rows, 0);
    target.allValid(rows);
    target.node(count, 0);
    target.allValid(count);
    target.buffer(column.values(vector), (long) count * column.dtype().bytes());
  }

  private void column(Field field, BlockColumnVector vector, int count) {
    target.node(count, vector.numNulls());
    ArrowType type = field.getType();
    if (type instanceof ArrowType.Null) {
      return;
    }
    if (vector.hasNull()) {
      target.buffer(vector.validity(), bits(count));
    } else {
      target.allValid(count);
    }
    List<Field> children = field.getChildren();
    if (type instanceof ArrowType.Struct) {
      for (int i = 0; i < children.size(); i++) {
        column(children.get(i), vector.getChild(i), count);
      }
    } else if (type instanceof ArrowType.List) {
      offsets(vector, count);
      column(children.get(0), vector.getChild(0), vector.offset(count));
    } else if (type instanceof ArrowType.Map) {
      map(children.get(0), vector, count);
    } else if (type instanceof ArrowType.Utf8 || type instanceof ArrowType.Binary) {
      offsets(vector, count);
      target.buffer(vector.values(), vector.offset(count));
    } else {
      target.buffer(vector.values(), fixedBytes(type, count));
    }
  }

  private void map(Field entries, BlockColumnVector vector, int count) {
    offsets(vector, count);
    int extent = vector.offset(count);
    target.node(extent, 0);
    target.allValid(extent);
    column(entries.getChildren().get(0), vector.getChild(0), extent);
    column(entries.getChildren().get(1), vector.getChild(1), extent);
  }

  private void offsets(BlockColumnVector vector, int count) {
    target.buffer(vector.offsets(), 4L * (count + 1L));
  }

  private static long bits(int count) {
    return (count + 7L) >> 3;
  }

  private static long fixedBytes(ArrowType type, int count) {
    return switch (type.getTypeID()) {
      case Bool -> bits(count);
      case Int -> ((ArrowType.Int) type).getBitWidth() / 8L * count;
      case FloatingPoint ->
          switch (((ArrowType.FloatingPoint) type).getPrecision()) {
            case HALF -> 2L * count;
            case SINGLE -> 4L * count;
            case DOUBLE -> 8L * count;
          };
      case Date, Interval -> 4L * count;
      case Timestamp, Duration -> 8L * count;
      case Decimal -> 16L * count;
      default -> throw new IllegalStateException("no column of a feed is " + type);
    };
  }
}
