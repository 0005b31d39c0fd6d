package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.format.TableMeta;

/** A table that a task waits for. */
public class PendingTransferRequest {
  public PendingTransferRequest(
      RapidsShuffleClient client, TableMeta tableMeta, RapidsShuffleFetchHandler handler) {
    throw new UnsupportedOperationException("a stub");
  }

  public RapidsShuffleClient client() {
    throw new UnsupportedOperationException("a stub");
  }

  public RapidsShuffleFetchHandler handler() {
    throw new UnsupportedOperationException("a stub");
  }

  public long getLength() {
    throw new UnsupportedOperationException("a stub");
  }
}
