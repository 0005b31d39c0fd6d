package io.weft.device.cuda;

/** The tier of a {@link TieredMemory}, the fastest first. */
public enum MemoryTier {
  DEVICE,
  /** Pinned host memory. */
  PINNED,
  /** The arena, in shared memory. */
  SHARED_MEMORY,
  /** The arena, on disk. */
  DISK
}
