package io.weft.peer;

import java.io.Serializable;
import java.util.Objects;

/**
 * What the choice of a way depends on at one end.
 *
 * @param kernel boot id of the kernel that the executor runs on; "unknown" where it has none
 * @param gpu the executor's GPU, or why there is none
 */
public record PathEnd(String kernel, GpuEnd gpu) implements Serializable {
  private static final String UNKNOWN = "unknown";

  public PathEnd {
    Objects.requireNonNull(kernel, "kernel");
    Objects.requireNonNull(gpu, "gpu");
  }

  /** Whether both run on one kernel; two without a name may not. */
  boolean isOnKernelOf(PathEnd other) {
    return kernel.equals(other.kernel) && !kernel.equals(UNKNOWN);
  }
}
