package io.weft.peer;

import java.io.Serializable;
import java.util.Objects;

/**
 * The properties of one end that the choice of a path depends on.
 *
 * @param kernel boot id of the executor's kernel; "unknown" if it has none
 * @param gpu the executor's GPU, or the reason for having none
 */
public record PathEnd(String kernel, GpuEnd gpu) implements Serializable {
  private static final String UNKNOWN = "unknown";

  public PathEnd {
    Objects.requireNonNull(kernel, "kernel");
    Objects.requireNonNull(gpu, "gpu");
  }

  /** Whether both ends run on one kernel. False for unknown boot ids. */
  boolean isOnKernelOf(PathEnd other) {
    return kernel.equals(other.kernel) && !kernel.equals(UNKNOWN);
  }
}
