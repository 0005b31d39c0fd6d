package com.nvidia.spark.rapids.shuffle;

import com.nvidia.spark.rapids.RapidsShuffleHandle;
import com.nvidia.spark.rapids.format.TableMeta;

/** A table: in GPU memory at a server, or as received by a client. */
public final class FakeTable extends RapidsShuffleHandle {
  public final int id;
  public final long address;
  public final long bytes;
  public final byte[] content;

  private FakeTable(int id, long address, long bytes, byte[] content) {
    this.id = id;
    this.address = address;
    this.bytes = bytes;
    this.content = content;
  }

  public static FakeTable onGpu(int id, long address, long bytes) {
    return new FakeTable(id, address, bytes, null);
  }

  static FakeTable arrived(int id, byte[] content) {
    return new FakeTable(id, 0, content.length, content);
  }

  /** The metadata that a server sends. */
  static final class Meta extends TableMeta {
    final int id;
    final long bytes;

    Meta(int id, long bytes) {
      this.id = id;
      this.bytes = bytes;
    }
  }
}
