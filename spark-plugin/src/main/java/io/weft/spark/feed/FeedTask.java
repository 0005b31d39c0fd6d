package io.weft.spark.feed;

import io.weft.collectives.Communicator;
import java.util.Optional;

/** One rank's side of a feed, valid while its function runs. For the task's thread. */
public interface FeedTask {
  /** This task's communicator with the other ranks. Opened on first use, closed with the task. */
  Communicator communicator();

  /** This rank: 0 to {@link #ranks()} - 1. */
  int rank();

  /** The number of ranks, 1 or more, which is also the size of the communicator. */
  int ranks();

  /**
   * The number of batches that {@link #batches} yields in every epoch. It is the same on every
   * rank, so a collective per batch never waits for a rank that has none left.
   */
  long steps();

  /**
   * Reads the rank's batches in the order of that epoch. With {@link WeftFeed#shuffled} each epoch
   * has another order, and the same seed, epoch and data give the same order. Only one epoch is
   * open at a time: opening another one closes the one before.
   *
   * @param epoch 0 or more, in any order
   */
  FeedBatches batches(int epoch);

  /** Why this rank has no {@link #gpuBatches}; empty if it has them. */
  Optional<String> gpuObstacle();

  /**
   * Like {@link #batches}, with the tensors of fixed shape uploaded to the GPU of the rank's
   * executor. The next batch is uploaded while one is in use. Needs memory for two batches there,
   * see the setting {@code spark.weft.gpu.memory}.
   *
   * @throws IllegalStateException if the executor has no GPU, with the reason
   * @throws IllegalArgumentException if the feed has no such tensors
   */
  GpuFeedBatches gpuBatches(int epoch);
}
