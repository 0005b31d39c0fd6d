package io.weft.transfers;

import io.weft.shuffle.peer.GpuEnd;
import io.weft.shuffle.peer.PathRules;
import io.weft.shuffle.peer.TransportMode;

/** A path between GPUs that a test uses, and the configuration that selects it. */
enum GpuPath {
  /** Both executors have NCCL. */
  NCCL,
  /** Both run on one kernel, without NCCL. */
  IPC,
  /** The user has turned off both. */
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
