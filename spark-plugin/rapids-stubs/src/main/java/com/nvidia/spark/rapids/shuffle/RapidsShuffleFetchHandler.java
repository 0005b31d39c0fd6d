package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.RapidsShuffleHandle;

/** A task that fetches. */
public interface RapidsShuffleFetchHandler {
  void start(int expectedBatches);

  boolean batchReceived(RapidsShuffleHandle handle);

  void transferError(String message, Throwable cause);

  long[] getTaskIds();
}
