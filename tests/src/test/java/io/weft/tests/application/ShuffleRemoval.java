package io.weft.tests.application;

import java.util.stream.IntStream;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.function.VoidFunction;

/** A task that removes shuffles where it runs, except on one executor. */
public final class ShuffleRemoval implements VoidFunction<Integer> {
  private static final long serialVersionUID = 1L;

  private final int end;
  private final String spared;

  /**
   * Creates a task.
   *
   * @param end above the ids of the shuffles
   * @param spared id of the executor that keeps them
   */
  public ShuffleRemoval(int end, String spared) {
    this.end = end;
    this.spared = spared;
  }

  @Override
  public void call(Integer ignored) {
    if (!SparkEnv.get().executorId().equals(spared)) {
      IntStream.range(0, end).forEach(SparkEnv.get().shuffleManager()::unregisterShuffle);
    }
  }
}
