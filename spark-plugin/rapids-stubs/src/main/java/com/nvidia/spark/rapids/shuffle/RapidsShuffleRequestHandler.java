package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.RapidsShuffleHandle;

/** Provides the tables that peers request. */
public interface RapidsShuffleRequestHandler {
  RapidsShuffleHandle getShuffleHandle(int tableId);
}
