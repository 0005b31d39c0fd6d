package io.weft.spark.feed;

import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VectorSchemaRoot;

/** Checks for the library of Arrow's C data interface, which is part of neither Spark nor Weft. */
final class CDataExport {
  private CDataExport() {}

  /**
   * Verifies that the library is present.
   *
   * @throws IllegalStateException if it is not
   */
  static void requirePresent() {
    try {
      Class<?> unused =
          Class.forName("org.apache.arrow.c.Data", false, CDataExport.class.getClassLoader());
    } catch (ClassNotFoundException e) {
      throw new IllegalStateException(
          "exporting by Arrow's C data interface needs org.apache.arrow:arrow-c-data, of the version"
              + " of Spark's other Arrow jars, on the class path of the executors",
          e);
    }
  }

  static void export(
      BufferAllocator allocator, VectorSchemaRoot root, long arrayAddress, long schemaAddress) {
    Data.exportVectorSchemaRoot(
        allocator, root, null, ArrowArray.wrap(arrayAddress), ArrowSchema.wrap(schemaAddress));
  }
}
