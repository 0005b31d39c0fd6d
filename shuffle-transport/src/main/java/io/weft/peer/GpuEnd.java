package io.weft.peer;

import java.io.Serializable;
import java.util.Objects;

/**
 * An executor's GPU as its executor announces it: arrays travel between it and the GPU of another
 * executor, by NCCL where both can use it.
 *
 * @param uuid of the GPU, the same in every process; empty where there is none
 * @param ordinal its number in the executor's process; 0 where there is none
 * @param name its model; empty where there is none
 * @param nccl version of NCCL in the executor's process, such as "2.28.3"; empty where there is
 *     none
 * @param obstacle why the executor takes no part in NCCL, without a full stop; empty when it does
 */
public record GpuEnd(String uuid, int ordinal, String name, String nccl, String obstacle)
    implements Serializable {
  public GpuEnd {
    Objects.requireNonNull(uuid, "uuid");
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(nccl, "nccl");
    Objects.requireNonNull(obstacle, "obstacle");
    if (obstacle.isBlank() && (uuid.isBlank() || nccl.isBlank())) {
      throw new IllegalArgumentException("without a GPU or NCCL there has to be an obstacle");
    }
    if (ordinal < 0) {
      throw new IllegalArgumentException("ordinal of GPU " + uuid + ": " + ordinal);
    }
  }

  /** A GPU that NCCL can use. */
  public static GpuEnd of(String uuid, int ordinal, String name, String nccl) {
    return new GpuEnd(uuid, ordinal, name, nccl, "");
  }

  /** No GPU, and why. */
  public static GpuEnd without(String obstacle) {
    return new GpuEnd("", 0, "", "", obstacle);
  }

  /** Whether there is a GPU, with NCCL or without. */
  public boolean isThere() {
    return !uuid.isEmpty();
  }

  /** Whether NCCL can use it. */
  public boolean hasNccl() {
    return obstacle.isEmpty();
  }

  /** Such as "GPU 1 (H100, 6b5f…) with NCCL 2.28.3", or "no GPU for arrays: …". */
  @Override
  public String toString() {
    if (!isThere()) {
      return "no GPU for arrays: " + obstacle;
    }
    return "GPU "
        + ordinal
        + " ("
        + name
        + ", "
        + uuid
        + (hasNccl() ? ") with NCCL " + nccl : ") without NCCL: " + obstacle);
  }
}
