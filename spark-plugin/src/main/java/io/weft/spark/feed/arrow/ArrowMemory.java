package io.weft.spark.feed.arrow;

import io.weft.spark.columns.ChunkView;
import io.weft.spark.feed.arrow.ArrowFields.ArrowBuffers;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.c.ArrowArray;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.ForeignAllocation;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorLoader;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.message.ArrowFieldNode;
import org.apache.arrow.vector.ipc.message.ArrowRecordBatch;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Presents chunks to Arrow as buffers of foreign memory. Its allocator only counts them; it
 * allocates nothing but one bitmap that all columns without nulls share. For one thread, which
 * closes it at the end of the task. The buffers that it makes may be released on any thread.
 */
public final class ArrowMemory implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ArrowMemory.class);

  private static final long LEAST_BITMAP = 1024;

  private BufferAllocator allocator;
  private final List<ArrowBuf> bitmaps = new ArrayList<>();

  /** A chunk's memory, with the action to run once Arrow has released it. */
  private static final class ChunkAllocation extends ForeignAllocation {
    private final Runnable released;

    ChunkAllocation(ChunkView chunk, Runnable released) {
      super(chunk.length(), chunk.address());
      this.released = released;
    }

    @Override
    protected void release0() {
      released.run();
    }
  }

  /**
   * Wraps a chunk as vectors on the chunk's own memory.
   *
   * @param released runs when no buffer of the chunk is in use any more
   * @return the vectors; the caller closes them
   */
  public BatchRoot root(StructType schema, ChunkView chunk, Runnable released) {
    Schema arrow = ArrowFields.of(schema);
    BatchRoot root = BatchRoot.empty(arrow, allocator());
    ArrowBuf memory = allocator().wrapForeignAllocation(new ChunkAllocation(chunk, released));
    try {
      Layout layout = new Layout(memory, chunk.address());
      ArrowBuffers.walk(schema, arrow, chunk, layout);
      try (ArrowRecordBatch batch =
          new ArrowRecordBatch(chunk.rows(), layout.nodes, layout.buffers)) {
        new VectorLoader(root).load(batch);
      }
      return root;
    } catch (RuntimeException | Error e) {
      root.close();
      throw e;
    } finally {
      memory.close();
    }
  }

  /** Exports a chunk by Arrow's C data interface into structures that the caller allocated. */
  public void export(
      StructType schema,
      ChunkView chunk,
      Runnable released,
      long arrayAddress,
      long schemaAddress) {
    CDataExport.requirePresent();
    try (VectorSchemaRoot root = root(schema, chunk, released)) {
      CDataExport.export(allocator(), root, arrayAddress, schemaAddress);
    }
  }

  private BufferAllocator allocator() {
    if (allocator == null) {
      allocator = new RootAllocator();
    }
    return allocator;
  }

  /**
   * Returns a slice of the shared bitmap. The bitmap is replaced when it must grow; the old one
   * stays while slices of it are in use.
   */
  private ArrowBuf ones(int values) {
    long bytes = (values + 7L) >> 3;
    ArrowBuf last = bitmaps.isEmpty() ? null : bitmaps.get(bitmaps.size() - 1);
    if (last == null || last.capacity() < bytes) {
      last = allocator().buffer(Math.max(2 * bytes, LEAST_BITMAP));
      bitmaps.add(last);
      last.setOne(0, last.capacity());
    }
    return last.slice(0, bytes);
  }

  /** Collects the parts of a record batch. */
  private final class Layout implements ArrowBuffers.Target {
    private final ArrowBuf memory;
    private final long start;
    private final List<ArrowFieldNode> nodes = new ArrayList<>();
    private final List<ArrowBuf> buffers = new ArrayList<>();

    Layout(ArrowBuf memory, long start) {
      this.memory = memory;
      this.start = start;
    }

    @Override
    public void node(int values, int nulls) {
      nodes.add(new ArrowFieldNode(values, nulls));
    }

    @Override
    public void allValid(int values) {
      buffers.add(ones(values));
    }

    @Override
    public void buffer(long address, long bytes) {
      buffers.add(memory.slice(address - start, bytes));
    }
  }

  @Override
  public void close() {
    if (allocator == null) {
      return;
    }
    bitmaps.forEach(ArrowBuf::close);
    try {
      allocator.close();
    } catch (IllegalStateException e) {
      LOG.warn("Arrow batches of a feed are still in use when their task ends", e);
    }
  }

  /**
   * The vectors of a batch. Unlike Arrow's own roots, it can tell cleared vectors from those of a
   * batch without rows.
   */
  public static final class BatchRoot extends VectorSchemaRoot {
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
    public boolean isCleared() {
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

  /**
   * Checks for the library of Arrow's C data interface, which is part of neither Spark nor Weft.
   */
  static final class CDataExport {
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
}
