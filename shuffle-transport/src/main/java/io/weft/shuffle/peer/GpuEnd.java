package io.weft.shuffle.peer;

import java.io.Serializable;
import java.util.Objects;

/**
 * The GPU that an executor announces. Arrays are sent between GPUs of two executors, by NCCL if
 * both can use it.
 *
 * @param uuid of the GPU, the same in every process; empty if there is no GPU
 * @param ordinal of the GPU in the executor's process; 0 if there is no GPU
 * @param name model of the GPU; empty if there is no GPU
 * @param nccl version of NCCL in the executor's process, such as "2.28.3"; empty if there is none
 * @param obstacle why the executor cannot use NCCL, without a full stop; empty if it can
 * @param sharesGpu whether this NCCL, in this environment, takes several executors on one GPU
 */
public record GpuEnd(
    String uuid, int ordinal, String name, String nccl, String obstacle, boolean sharesGpu)
    implements Serializable {
  public GpuEnd {
    Objects.requireNonNull(uuid, "uuid");
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(nccl, "nccl");
    Objects.requireNonNull(obstacle, "obstacle");
    if (obstacle.isBlank() && (uuid.isBlank() || nccl.isBlank())) {
      throw new IllegalArgumentException("an executor without a GPU or NCCL needs an obstacle");
    }
    if (ordinal < 0) {
      throw new IllegalArgumentException("ordinal of GPU " + uuid + ": " + ordinal);
    }
  }

  /** A GPU for one executor. */
  public GpuEnd(String uuid, int ordinal, String name, String nccl, String obstacle) {
    this(uuid, ordinal, name, nccl, obstacle, false);
  }

  /** A copy whose NCCL takes several executors on one GPU, or not. */
  public GpuEnd sharing(boolean shares) {
    return new GpuEnd(uuid, ordinal, name, nccl, obstacle, shares);
  }

  /** Returns a GPU that NCCL can use. */
  public static GpuEnd of(String uuid, int ordinal, String name, String nccl) {
    return new GpuEnd(uuid, ordinal, name, nccl, "");
  }

  /** Returns no GPU, with the reason. */
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

  /** For example "GPU 1 (H100, 6b5f…) with NCCL 2.28.3", or "no GPU for arrays: …". */
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
