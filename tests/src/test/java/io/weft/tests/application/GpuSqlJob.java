package io.weft.tests.application;

import io.weft.collectives.DataType;
import io.weft.device.Event;
import io.weft.device.cuda.CudaMemory;
import io.weft.shuffle.device.DeviceTable;
import io.weft.spark.feed.WeftTensors;
import io.weft.spark.gpu.DeviceWork;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.sql.WeftGpu;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;

/**
 * A query whose rows, tensors among them, are exchanged from GPU to GPU in small tables, and copied
 * there once by a function.
 *
 * @param libcuda the double, which reports broken rules
 * @param notes of a reader that waits to be killed, or null: the first attempt of partition 0
 */
public record GpuSqlJob(String libcuda, Notes notes) implements Serializable {
  private static final int ROWS = 20_000;
  private static final int MAPS = 16;
  private static final int PARTITIONS = 6;
  private static final long[] TENSOR_SHAPE = {2, 2};
  private static final long LIMIT_NANOS = TimeUnit.MINUTES.toNanos(3);

  private static Dataset<Row> rows(SparkSession session) {
    return session
        .range(0, ROWS, 1, MAPS)
        .selectExpr(
            "id",
            "if(id % 13 = 0, null, cast(id * 7919 % 211 as int)) k",
            "if(id % 11 = 0, null, repeat(concat('x', id % 97), cast(id % 5 as int))) s",
            "if(id % 3 = 0, null, cast(id as decimal(30,6)) * -1000003) big",
            "if(id % 23 = 0, null, id % 3 = 0) b",
            "id * 0.5 x",
            "if(id % 19 = 0, null, array(cast(id as float), 2f, 3f, -4f)) t")
        .withColumn(
            "t", WeftTensors.column(functions.col("t"), "t", DataType.FLOAT32, TENSOR_SHAPE));
  }

  /** The rows by Spark's own shuffle, with their partitions, sorted. */
  public static List<String> expected(SparkSession session) {
    session.conf().set("spark.weft.enabled", "false");
    try {
      return sorted(
          texts(rows(session).repartition(PARTITIONS, functions.col("k"), functions.col("s"))));
    } finally {
      session.conf().set("spark.weft.enabled", "true");
    }
  }

  /** The rows by way of the GPUs, in the form of {@link #expected}. */
  public List<String> run(SparkSession session) {
    return sorted(query(session));
  }

  /** The query of {@link #run}, to be run by {@link #sorted}. */
  public Dataset<String> query(SparkSession session) {
    Dataset<Row> onDevice = WeftGpu.onDevice(rows(session));
    Dataset<Row> exchanged =
        onDevice.repartition(PARTITIONS, functions.col("k"), functions.col("s"));
    StructType schema = exchanged.schema();
    Dataset<Row> mapped = WeftGpu.mapBatches(exchanged, schema, this::copy);
    return texts(mapped);
  }

  private static Dataset<String> texts(Dataset<Row> rows) {
    return rows.withColumn("partition", functions.spark_partition_id()).toJSON();
  }

  /** The rows of a query, sorted. */
  public static List<String> sorted(Dataset<String> query) {
    return query.collectAsList().stream().sorted().toList();
  }

  private DeviceTable copy(DeviceTable batch, DeviceWork work) throws java.io.IOException {
    TaskContext context = TaskContext.get();
    boolean first = context.stageAttemptNumber() == 0 && context.attemptNumber() == 0;
    if (notes != null && first && context.partitionId() == 0) {
      notes.leave("victim", SparkEnv.get().executorId());
      awaitKill(context);
    }
    return copied(batch, work);
  }

  /** Copies a batch to other memory of the GPU. */
  static DeviceTable copied(DeviceTable batch, DeviceWork work) {
    CudaMemory memory = work.take(batch.bytes());
    long from = batch.address();
    long to = memory.address();
    Event copied =
        work.lane()
            .submit(
                "a copy of " + batch,
                () -> work.lane().stream().copyOnDevice(to, from, batch.bytes()),
                batch.ready());
    return DeviceTable.of(memory, batch.layout(), copied);
  }

  private static void awaitKill(TaskContext context) {
    long deadline = System.nanoTime() + LIMIT_NANOS;
    while (!context.isInterrupted() && System.nanoTime() < deadline) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
    }
  }

  /**
   * The state of an executor.
   *
   * @param outputs map outputs on its GPU
   * @param violations of the driver's rules
   */
  public record Answer(String executorId, int gpu, int outputs, String violations)
      implements Serializable {}

  /** Reads the state of all executors, by more tasks than there are executors. */
  public List<Answer> ask(SparkSession session) {
    String library = libcuda;
    MapPartitionsFunction<Long, String> asked =
        ids -> {
          var device = ExecutorGpu.current().exchange();
          LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(200));
          return List.of(
                  "%s/%d/%d/%s"
                      .formatted(
                          SparkEnv.get().executorId(),
                          device.gpu().device().device().ordinal(),
                          device.catalog().keys().size(),
                          TestGpu.violations(library)))
              .iterator();
        };
    List<Answer> answers = new ArrayList<>();
    for (String text :
        session
            .range(0, 8, 1, 8)
            .mapPartitions(asked, Encoders.STRING())
            .distinct()
            .collectAsList()) {
      String[] parts = text.split("/", 4);
      answers.add(
          new Answer(parts[0], Integer.parseInt(parts[1]), Integer.parseInt(parts[2]), parts[3]));
    }
    return answers;
  }
}
