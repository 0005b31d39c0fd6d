package io.weft.tests.application;

import io.weft.spark.feed.GpuFeedBatch;
import io.weft.spark.feed.GpuFeedBatches;
import io.weft.spark.feed.GpuTensor;
import io.weft.spark.feed.WeftFeed;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.sql.WeftGpu;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * A feed whose rows move from GPU to GPU, into two ranks that read every row.
 *
 * @param libcuda the double, which reports broken rules
 * @param notes of a rank that waits to be killed, or to be told to fail, or null: rank 1 of the
 *     first attempt
 */
public record GpuExchangeJob(String libcuda, Notes notes) implements Serializable {
  /** The note that makes the waiting rank fail. */
  public static final String GO = "go";

  private static final int WIDTH = 32;
  private static final long LIMIT_NANOS = TimeUnit.MINUTES.toNanos(3);

  /**
   * The result of a rank.
   *
   * @param gpu the number of its GPU
   * @param ids of its rows
   * @param violations of the driver's rules
   */
  public record Answer(String executorId, int gpu, ArrayList<Long> ids, String violations)
      implements Serializable {}

  /** Runs it; returns the answers in the order of the ranks. */
  public List<Answer> run(SparkSession session) {
    return run(FeedJob.feed(session));
  }

  /** Runs it on the batches of a query that ends on the GPUs, shuffled. */
  public List<Answer> runAfterQuery(SparkSession session) {
    Dataset<Row> rows = FeedJob.rows(session);
    Dataset<Row> mapped = WeftGpu.mapBatches(rows, rows.schema(), GpuSqlJob::copied);
    return run(WeftFeed.shards(mapped, 2).batchRows(FeedJob.BATCH_ROWS).shuffled(1));
  }

  private List<Answer> run(WeftFeed feed) {
    return feed.onGpus()
        .train(
            task -> {
              BarrierTaskContext context = BarrierTaskContext.get();
              if (notes != null && context.stageAttemptNumber() == 0 && task.rank() == 1) {
                notes.leave("victim", SparkEnv.get().executorId());
                awaitKill(context);
                if (notes.isThere(GO)) {
                  throw new IllegalStateException("this attempt was told to fail");
                }
              }
              ArrayList<Long> ids = new ArrayList<>();
              try (TestGpu gpu = new TestGpu();
                  GpuFeedBatches batches = task.gpuBatches(0)) {
                while (batches.hasNext()) {
                  ids.addAll(ids(gpu, batches.next()));
                }
              }
              return new Answer(
                  SparkEnv.get().executorId(),
                  ExecutorGpu.current().open().device().device().ordinal(),
                  ids,
                  TestGpu.violations(libcuda));
            });
  }

  private void awaitKill(BarrierTaskContext context) {
    long deadline = System.nanoTime() + LIMIT_NANOS;
    while (!context.isInterrupted() && !notes.isThere(GO) && System.nanoTime() < deadline) {
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(20));
    }
  }

  static List<Long> ids(TestGpu gpu, GpuFeedBatch batch) {
    batch.orderBefore(gpu.stream());
    ByteBuffer ids = bytes(gpu, batch.tensor("id"));
    ByteBuffer x = bytes(gpu, batch.tensor("x"));
    batch.usedOn(gpu.stream());
    List<Long> seen = new ArrayList<>();
    for (int row = 0; row < batch.rows(); row++) {
      long id = ids.getLong(8 * row);
      for (int i = 0; i < WIDTH; i++) {
        if (x.getFloat(4 * (WIDTH * row + i)) != id + i + 1) {
          throw new IllegalStateException("row " + id + " differs at " + i);
        }
      }
      seen.add(id);
    }
    return seen;
  }

  private static ByteBuffer bytes(TestGpu gpu, GpuTensor tensor) {
    return gpu.download(tensor.buffer().address(), tensor.buffer().bytes());
  }
}
