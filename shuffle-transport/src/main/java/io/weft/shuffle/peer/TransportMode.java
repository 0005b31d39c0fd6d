package io.weft.shuffle.peer;

/**
 * The path for blocks of other executors. An executor's own blocks are always read in place. NCCL
 * and CUDA IPC carry arrays of GPUs with {@link #AUTO} only.
 */
public enum TransportMode {
  /** In place from peers on this host; by TCP from other peers and if mapping fails. */
  AUTO,
  /** As {@link #AUTO}, but it is an error if a peer's memory on this host cannot be mapped. */
  SHM,
  /** By TCP from all other executors, even on this host. */
  TCP
}
