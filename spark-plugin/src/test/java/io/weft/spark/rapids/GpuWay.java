package io.weft.spark.rapids;

import io.weft.peer.GpuEnd;
import io.weft.peer.PathRules;
import io.weft.peer.TransportMode;

/** A way between GPUs that a test is about, and what the executors have that makes them take it. */
enum GpuWay {
  /** Each has NCCL. */
  NCCL,
  /** They run on one kernel, without NCCL. */
  IPC,
  /** The user wants neither. */
  STAGED;

  PathRules rules() {
    return new PathRules(this == STAGED ? TransportMode.SHM : TransportMode.AUTO, false, false);
  }

  GpuEnd end(String uuid, int ordinal, String name, String nccl) {
    return this == IPC
        ? new GpuEnd(uuid, ordinal, name, "", "this test is about CUDA IPC")
        : GpuEnd.of(uuid, ordinal, name, nccl);
  }
}
