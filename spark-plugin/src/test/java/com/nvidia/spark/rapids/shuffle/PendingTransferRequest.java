package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.format.TableMeta;

/** A table that a task waits for. */
public class PendingTransferRequest {
  private final RapidsShuffleClient client;
  private final FakeTable.Meta meta;
  private final RapidsShuffleFetchHandler handler;

  public PendingTransferRequest(
      RapidsShuffleClient client, TableMeta meta, RapidsShuffleFetchHandler handler) {
    this.client = client;
    this.meta = (FakeTable.Meta) meta;
    this.handler = handler;
  }

  public RapidsShuffleClient client() {
    return client;
  }

  public RapidsShuffleFetchHandler handler() {
    return handler;
  }

  public long getLength() {
    return meta.bytes;
  }

  int id() {
    return meta.id;
  }
}
