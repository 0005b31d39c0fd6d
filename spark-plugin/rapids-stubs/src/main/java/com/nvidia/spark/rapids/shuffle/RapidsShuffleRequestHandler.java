package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.RapidsShuffleHandle;

/** Gives the tables that peers ask for. */
public interface RapidsShuffleRequestHandler {
  RapidsShuffleHandle getShuffleHandle(int tableId);
}
