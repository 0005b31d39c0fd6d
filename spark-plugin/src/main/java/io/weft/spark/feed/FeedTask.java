package io.weft.spark.feed;

import io.weft.collectives.Communicator;
import java.util.Optional;

/** One rank's end of a feed, valid while its function runs. For the task's thread. */
public interface FeedTask {
  /** This task's communicator with the other ranks; opened on first use, closed with the task. */
  Communicator communicator();

  /** 0 to {@link #ranks()} - 1. */
  int rank();

  /** Tasks that this feed is dealt to, 1 or more: as many as the communicator has ranks. */
  int ranks();

  /**
   * Batches that {@link #batches} yields in every epoch, on every rank the same number, so that a
   * collective per batch never waits for a rank that has none left.
   */
  long steps();

  /**
   * Reads the rank's batches, in the order of that epoch: with {@link WeftFeed#shuffled} another
   * one in each, and the same again for the same seed, epoch and data. One at a time: opening
   * another epoch closes the one before.
   *
   * @param epoch 0 or more, in any order
   */
  FeedBatches batches(int epoch);

  /** Why this rank has no {@link #gpuBatches}; empty where it has. */
  Optional<String> gpuObstacle();

  /**
   * As {@link #batches}, with the tensors of fixed shape uploaded to the GPU of the rank's
   * executor: while one batch is used the next is on its way. Needs memory for two batches there,
   * see the setting {@code spark.weft.gpu.memory}.
   *
   * @throws IllegalStateException where the executor has no GPU, with the reason
   * @throws IllegalArgumentException if the feed has no such tensors
   */
  GpuFeedBatches gpuBatches(int epoch);
}
