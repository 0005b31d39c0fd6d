package io.weft.spark.feed;

import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;

/**
 * The vectors of a batch. Unlike Arrow's own roots, it can tell cleared vectors from those of a
 * batch without rows.
 */
final class BatchRoot extends VectorSchemaRoot {
  private boolean cleared;

  private BatchRoot(Schema schema, List<FieldVector> vectors) {
    super(schema, vectors, 0);
  }

  /** Vectors without values. */
  static BatchRoot empty(Schema schema, BufferAllocator allocator) {
    List<FieldVector> vectors = new ArrayList<>();
    for (Field field : schema.getFields()) {
      vectors.add(field.createVector(allocator));
    }
    return new BatchRoot(schema, vectors);
  }

  /** Returns whether the user has cleared the vectors. */
  boolean isCleared() {
    return cleared;
  }

  @Override
  public void clear() {
    cleared = true;
    super.clear();
  }

  @Override
  public void close() {
    cleared = true;
    super.close();
  }
}
