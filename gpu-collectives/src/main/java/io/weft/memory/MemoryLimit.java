package io.weft.memory;

import java.util.Optional;

/**
 * Says whether shared memory may grow. An arena asks before each new segment, so the answer may
 * change while the process runs. Implementations are thread-safe and fast.
 */
public interface MemoryLimit {
  /** No limit beyond the budget and the margin. */
  MemoryLimit NONE = bytes -> Optional.empty();

  /** Returns why that many more bytes are too many now; empty if they are not. */
  Optional<String> objection(long bytes);
}
