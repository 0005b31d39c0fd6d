package io.weft.tests.application;

import io.weft.spark.feed.GpuFeedBatches;
import io.weft.spark.gpu.ExecutorGpu;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.SparkSession;

/**
 * A feed into two ranks that read every row in memory of their GPUs.
 *
 * @param libcuda the double, which reports broken rules
 */
public record GpuFeedJob(String libcuda) implements Serializable {
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
    return FeedJob.feed(session)
        .shuffled(1)
        .train(
            task -> {
              ArrayList<Long> ids = new ArrayList<>();
              try (TestGpu gpu = new TestGpu();
                  GpuFeedBatches batches = task.gpuBatches(0)) {
                while (batches.hasNext()) {
                  ids.addAll(GpuExchangeJob.ids(gpu, batches.next()));
                }
              }
              return new Answer(
                  SparkEnv.get().executorId(),
                  ExecutorGpu.current().open().device().device().ordinal(),
                  ids,
                  TestGpu.violations(libcuda));
            });
  }
}
