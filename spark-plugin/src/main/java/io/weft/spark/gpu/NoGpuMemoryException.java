package io.weft.spark.gpu;

import io.weft.spark.config.NoRepeat;

/** There is less GPU memory than a task needs, and a wait for more was in vain or would be. */
public final class NoGpuMemoryException extends IllegalStateException implements NoRepeat {
  private static final long serialVersionUID = 1L;

  NoGpuMemoryException(String message, Throwable cause) {
    super(message, cause);
  }
}
