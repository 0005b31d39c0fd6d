package io.weft.device.cuda;

/** Where bytes of a {@link TieredMemory} lie, the fastest first. */
public enum MemoryTier {
  DEVICE,
  /** Pinned host memory. */
  PINNED,
  /** The arena, in shared memory. */
  SHARED_MEMORY,
  /** The arena, on disk. */
  DISK
}
