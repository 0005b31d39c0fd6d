package io.weft.peer;

/**
 * Which way the blocks of another executor come; own blocks are always read in place. Arrays of
 * GPUs may go by NCCL, or by CUDA IPC, with {@link #AUTO} only.
 */
public enum TransportMode {
  /** In place from peers on this host, by TCP from the others or where mapping fails. */
  AUTO,
  /** As {@link #AUTO}, but a peer on this host whose memory cannot be mapped is an error. */
  SHM,
  /** By TCP from every other executor, also on this host. */
  TCP
}
