package io.weft.spark.columns;

import io.weft.memory.Extent;
import io.weft.memory.MemoryKind;
import io.weft.spark.columns.ChunkFormat.ChunkSource;
import io.weft.spark.columns.PartitionBuilders.ChunkSink;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Measures the time of one map task and one reduce task on one core. Not a test: run its {@code
 * main} with the number of rows (default 10 million), of partitions (16) and of rounds (6).
 */
public final class ScatterBenchmark {
  private static final int BATCH_ROWS = 4096;

  /** Input stays in the caches of a core, as when a scan reuses its batch. */
  private static final int CACHED_BATCHES = 4;

  private static final int TARGET_ROWS = 8192;
  private static final long TARGET_BYTES = 64L << 20;

  private final long rows;
  private final int partitions;
  private final int rounds;

  private ScatterBenchmark(long rows, int partitions, int rounds) {
    this.rows = rows;
    this.partitions = partitions;
    this.rounds = rounds;
  }

  public static void main(String[] args) throws Exception {
    long rows = args.length > 0 ? Long.parseLong(args[0]) : 10_000_000L;
    int partitions = args.length > 1 ? Integer.parseInt(args[1]) : 16;
    int rounds = args.length > 2 ? Integer.parseInt(args[2]) : 6;
    String which = args.length > 3 ? args[3] : "all";
    ScatterBenchmark benchmark = new ScatterBenchmark(rows, partitions, rounds);
    for (Workload workload : Workload.values()) {
      if (which.equals("all") || which.equalsIgnoreCase(workload.name())) {
        benchmark.run(workload);
      }
    }
  }

  /** The columns of the rows. */
  private enum Workload {
    NUMBERS("bigint", 9, 1, false),
    NULLABLE("bigint", 9, 1, true),
    STRINGS("string", 4, 4, false),
    TENSORS("array<float>", 1, 200, false),
    WIDE("bigint", 50, 6, false);

    private final StructType schema;
    private final int rowsDivisor;
    private final boolean nulls;

    Workload(String type, int columns, int rowsDivisor, boolean nulls) {
      List<DataType> types = new ArrayList<>();
      types.add(DataType.fromDDL("bigint"));
      for (int i = 1; i < columns; i++) {
        types.add(DataType.fromDDL(type));
      }
      if (columns == 1) {
        types.add(DataType.fromDDL(type));
      }
      this.schema = RandomRows.schema(types);
      this.rowsDivisor = rowsDivisor;
      this.nulls = nulls;
    }
  }

  private void run(Workload workload) throws Exception {
    long count = rows / workload.rowsDivisor;
    List<ColumnarBatch> batches = batches(workload, CACHED_BATCHES);
    BatchPartitioner partitioner = partitioner(workload.schema);
    try (Region region = new Region((long) (bytesPerRow(workload) * count * 1.3) + (64L << 20))) {
      for (int round = 0; round < rounds; round++) {
        region.reset();
        write(workload, count, batches, partitioner, region);
      }
    }
    compareReading(workload, count);
  }

  private void write(
      Workload workload,
      long count,
      List<ColumnarBatch> batches,
      BatchPartitioner partitioner,
      Region region)
      throws Exception {
    int[] ids = new int[BATCH_ROWS];
    long start = cpu();
    for (long done = 0; done < count; done += BATCH_ROWS) {
      partitioner.partitionIds(batches.get((int) (done / BATCH_ROWS % batches.size())), ids);
    }
    long hash = cpu() - start;
    start = cpu();
    long chunks;
    try (BatchScatter scatter =
        new BatchScatter(workload.schema, partitions, region, TARGET_ROWS, TARGET_BYTES)) {
      for (long done = 0; done < count; done += BATCH_ROWS) {
        ColumnarBatch batch = batches.get((int) (done / BATCH_ROWS % batches.size()));
        partitioner.partitionIds(batch, ids);
        scatter.append(batch, ids);
      }
      scatter.finish();
      chunks = scatter.batches();
    }
    long write = cpu() - start;
    System.out.printf(
        Locale.ROOT,
        "%-8s %9d rows %4d partitions: hash %4d ms, hash+scatter+copy %4d ms (%4.2f GB/s),"
            + " %d chunks, %d MB%n",
        workload,
        count,
        partitions,
        hash / 1_000_000,
        write / 1_000_000,
        (double) region.used() / write,
        chunks,
        region.used() >> 20);
  }

  /** Reads a tenth of the rows, every byte, from chunks and from Spark's vectors. */
  private void compareReading(Workload workload, long count) throws Exception {
    int batchCount = (int) Math.max(1, count / 10 / BATCH_ROWS);
    List<ColumnarBatch> batches = batches(workload, batchCount);
    long bytes = (long) (bytesPerRow(workload) * BATCH_ROWS * batchCount * 1.3) + (64L << 20);
    try (Region region = new Region(bytes)) {
      int[] ids = new int[BATCH_ROWS];
      BatchPartitioner partitioner = partitioner(workload.schema);
      try (BatchScatter scatter =
          new BatchScatter(workload.schema, partitions, region, TARGET_ROWS, TARGET_BYTES)) {
        for (ColumnarBatch batch : batches) {
          partitioner.partitionIds(batch, ids);
          scatter.append(batch, ids);
        }
        scatter.finish();
      }
      for (int round = 0; round < rounds; round++) {
        compareReading(workload, batches, region);
      }
    }
  }

  private static void compareReading(
      Workload workload, List<ColumnarBatch> batches, Region region) {
    long start = cpu();
    long sum = 0;
    try (BatchReader reader = new BatchReader(workload.schema, region.read(), TARGET_ROWS)) {
      while (reader.hasNext()) {
        sum += sum(workload, reader.next());
      }
    }
    long read = cpu() - start;
    start = cpu();
    long expected = 0;
    for (ColumnarBatch batch : batches) {
      expected += sum(workload, batch);
    }
    long readSpark = cpu() - start;
    if (sum != expected) {
      throw new AssertionError("read " + sum + " instead of " + expected);
    }
    double values = (double) batches.size() * BATCH_ROWS * workload.schema.length();
    System.out.printf(
        Locale.ROOT,
        "%-8s read %5.2f ns per value, from Spark's on-heap vectors %5.2f%n",
        workload,
        read / values,
        readSpark / values);
  }

  private static long cpu() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
  }

  private static long sum(Workload workload, ColumnarBatch batch) {
    long sum = 0;
    for (int i = 0; i < batch.numCols(); i++) {
      sum +=
          switch (workload.schema.fields()[i].dataType().simpleString()) {
            case "bigint" -> longs(batch.column(i), batch.numRows());
            case "string" -> strings(batch.column(i), batch.numRows());
            default -> arrays(batch.column(i), batch.numRows());
          };
    }
    return sum;
  }

  private static long longs(ColumnVector column, int rows) {
    long sum = 0;
    for (int row = 0; row < rows; row++) {
      if (!column.isNullAt(row)) {
        sum += column.getLong(row);
      }
    }
    return sum;
  }

  private static long strings(ColumnVector column, int rows) {
    long sum = 0;
    for (int row = 0; row < rows; row++) {
      sum += column.getUTF8String(row).numBytes();
    }
    return sum;
  }

  private static long arrays(ColumnVector column, int rows) {
    long sum = 0;
    for (int row = 0; row < rows; row++) {
      sum += (long) column.getArray(row).getFloat(3);
    }
    return sum;
  }

  private static double bytesPerRow(Workload workload) {
    return switch (workload) {
      case NUMBERS, NULLABLE -> 74;
      case STRINGS -> 110;
      case TENSORS -> 4120;
      case WIDE -> 420;
    };
  }

  private BatchPartitioner partitioner(StructType schema) {
    List<Attribute> output = new ArrayList<>();
    for (var field : schema.fields()) {
      output.add(
          new AttributeReference(
              field.name(),
              field.dataType(),
              true,
              Metadata.empty(),
              NamedExpression.newExprId(),
              CollectionConverters.asScala(List.<String>of()).toSeq()));
    }
    Seq<Expression> keys =
        CollectionConverters.asScala(List.<Expression>of((Expression) output.get(0))).toSeq();
    return HashBatchPartitioner.create(
        new HashPartitioning(keys, partitions), CollectionConverters.asScala(output).toSeq());
  }

  private static List<ColumnarBatch> batches(Workload workload, int count) {
    Random random = new Random(1);
    List<ColumnarBatch> batches = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      OnHeapColumnVector[] columns =
          OnHeapColumnVector.allocateColumns(BATCH_ROWS, workload.schema);
      for (OnHeapColumnVector column : columns) {
        fill(workload, random, column);
      }
      batches.add(new ColumnarBatch(columns, BATCH_ROWS));
    }
    return batches;
  }

  private static void fill(Workload workload, Random random, OnHeapColumnVector column) {
    for (int row = 0; row < BATCH_ROWS; row++) {
      switch (column.dataType().simpleString()) {
        case "bigint" -> {
          if (workload.nulls && random.nextInt(10) == 0) {
            column.appendNull();
          } else {
            column.appendLong(random.nextLong());
          }
        }
        case "string" -> {
          byte[] text = "some text".repeat(1 + random.nextInt(5)).getBytes();
          column.appendByteArray(text, 0, text.length);
        }
        default -> {
          column.appendArray(1024);
          column.arrayData().appendFloats(1024, random.nextInt(100));
        }
      }
    }
  }

  /** Memory that is touched once and reused for each round, like an arena. */
  private static final class Region implements ChunkSink, AutoCloseable {
    private final long base;
    private final long bytes;
    private long next;
    private final List<Extent> chunks = new ArrayList<>();

    Region(long bytes) {
      this.bytes = bytes;
      this.base = Platform.allocateMemory(bytes);
      Platform.setMemory(base, (byte) 0, bytes);
      reset();
    }

    void reset() {
      next = ChunkFormat.align(base);
      chunks.clear();
    }

    long used() {
      return next - base;
    }

    @Override
    public Extent allocate(long length) {
      Extent extent = new Extent(MemoryKind.SHARED_MEMORY, 0, 0, ChunkFormat.align(length), next);
      next += extent.length();
      if (next > base + bytes) {
        throw new IllegalStateException("The region is full");
      }
      return extent;
    }

    @Override
    public void commit(int partition, Extent chunk, long usedBytes, int rows) {
      chunks.add(chunk);
    }

    @Override
    public void release(Extent chunk) {}

    ChunkSource read() {
      return new ChunkSource() {
        private int index = -1;

        @Override
        public boolean next() {
          return ++index < chunks.size();
        }

        @Override
        public long address() {
          return chunks.get(index).address();
        }

        @Override
        public long length() {
          return chunks.get(index).length();
        }

        @Override
        public String describe() {
          return "the benchmark";
        }

        @Override
        public void close() {}
      };
    }

    @Override
    public void close() {
      Platform.freeMemory(base);
    }
  }
}
