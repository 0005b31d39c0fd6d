package io.weft.shuffle.peer;

import io.weft.memory.SettingNames;
import java.io.Serializable;
import java.util.Comparator;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Chooses the paths for blocks and for arrays between two executors, from what both announced. Both
 * ends and the driver make the same choice. Immutable.
 *
 * @param mode the user's setting; NCCL and CUDA IPC are used with {@link TransportMode#AUTO} only
 * @param encrypted whether Spark encrypts traffic between executors
 * @param unencryptedNccl whether NCCL, which does not encrypt, may still be used between hosts
 * @param names the names of these options in messages
 */
public record PathRules(
    TransportMode mode, boolean encrypted, boolean unencryptedNccl, SettingNames names) {
  private static final String ONE_KERNEL = "both run on one kernel";
  private static final String TWO_KERNELS = "they run on two kernels";

  public PathRules {
    Objects.requireNonNull(mode, "mode");
    Objects.requireNonNull(names, "names");
  }

  /** Options under their own names. */
  public PathRules(TransportMode mode, boolean encrypted, boolean unencryptedNccl) {
    this(mode, encrypted, unencryptedNccl, SettingNames.OWN);
  }

  /**
   * Chooses the path for shuffle blocks. Blocks are in host memory, so NCCL never carries them. If
   * the owner's folder is not visible to the reader, as in containers, the reader uses tcp instead
   * of shm. It detects that when it reads.
   */
  public PathChoice blocks(PathEnd one, PathEnd other) {
    if (mode == TransportMode.TCP) {
      return new PathChoice(TransferPath.TCP, names.of("mode") + " is tcp");
    }
    return one.isOnKernelOf(other)
        ? new PathChoice(TransferPath.SHM, ONE_KERNEL)
        : new PathChoice(TransferPath.TCP, TWO_KERNELS);
  }

  /**
   * Chooses the path for arrays of tasks: from GPU to GPU by NCCL, else by CUDA IPC on one kernel,
   * else through host memory. The ends test at their rendezvous whether they can map each other's
   * memory.
   */
  public PathChoice arrays(PathEnd one, PathEnd other) {
    Optional<String> obstacle = obstacle(one, other).or(() -> obstacleForArrays(one, other));
    if (obstacle.isEmpty()) {
      return new PathChoice(
          TransferPath.NCCL,
          (one.gpu().uuid().equals(other.gpu().uuid()) ? "one GPU" : "a GPU each")
              + ", and NCCL "
              + one.gpu().nccl()
              + " at both ends");
    }
    return mayMap(one, other) ? mapped(obstacle.get()) : throughHosts(one, other, obstacle.get());
  }

  /** Whether each end may try to map memory of the other's GPU. Both must run on one kernel. */
  public boolean mayMap(PathEnd one, PathEnd other) {
    return mode == TransportMode.AUTO
        && one.isOnKernelOf(other)
        && one.gpu().isThere()
        && other.gpu().isThere();
  }

  /**
   * Returns the path for arrays without NCCL if the ends can map each other's memory.
   *
   * @param obstacle why NCCL is not used
   */
  public PathChoice mapped(String obstacle) {
    return new PathChoice(TransferPath.IPC, "no NCCL: " + obstacle + "; " + ONE_KERNEL);
  }

  /**
   * Returns the path for arrays without NCCL and CUDA IPC.
   *
   * @param obstacle why NCCL, and possibly CUDA IPC, is not used
   */
  public PathChoice throughHosts(PathEnd one, PathEnd other, String obstacle) {
    String reason = "no NCCL: " + obstacle;
    if (one.isOnKernelOf(other)) {
      return new PathChoice(TransferPath.SHM, reason + "; " + ONE_KERNEL);
    }
    return encrypted
        ? new PathChoice(
            TransferPath.NONE,
            reason + "; nor do arrays go by sockets while Spark encrypts its network")
        : new PathChoice(TransferPath.TCP, reason + "; " + TWO_KERNELS);
  }

  /** Why NCCL cannot connect the ends; empty if it can. Does not depend on their order. */
  public Optional<String> obstacle(PathEnd one, PathEnd other) {
    if (mode != TransportMode.AUTO) {
      return Optional.of(names.of("mode") + " is not auto");
    }
    return unusable(one.gpu(), other.gpu())
        .or(() -> mismatch(one.gpu(), other.gpu()))
        .or(() -> refusal(one, other));
  }

  private static Optional<String> unusable(GpuEnd one, GpuEnd other) {
    // Sorted, so that both ends name the same reason.
    return Stream.of(one, other)
        .filter(gpu -> !gpu.hasNccl())
        .map(GpuEnd::obstacle)
        .min(Comparator.naturalOrder());
  }

  /**
   * Why arrays take CUDA IPC although NCCL can connect the ends; empty if they do not. Kernels of
   * two processes on one GPU take turns, so NCCL's, which wait for each other, are slow: on an H100
   * a shuffle of 3 GB took 4.8 s by NCCL and 0.3 s by CUDA IPC.
   */
  public Optional<String> obstacleForArrays(PathEnd one, PathEnd other) {
    return one.gpu().uuid().equals(other.gpu().uuid()) && mayMap(one, other)
        ? Optional.of("both are on GPU " + one.gpu().uuid() + ", where CUDA IPC is faster")
        : Optional.empty();
  }

  private static Optional<String> mismatch(GpuEnd one, GpuEnd other) {
    if (one.uuid().equals(other.uuid()) && !(one.sharesGpu() && other.sharesGpu())) {
      return Optional.of(
          "both are on GPU "
              + one.uuid()
              + ", and NCCL takes one rank for each GPU, unless it is 2.30.3 or newer and both have"
              + " NCCL_MULTI_RANK_GPU_ENABLE=1 in the environment");
    }
    boolean inOrder = one.nccl().compareTo(other.nccl()) <= 0;
    String first = inOrder ? one.nccl() : other.nccl();
    String second = inOrder ? other.nccl() : one.nccl();
    return first.equals(second)
        ? Optional.empty()
        : Optional.of("one end has NCCL %s, the other %s".formatted(first, second));
  }

  private Optional<String> refusal(PathEnd one, PathEnd other) {
    return encrypted && !unencryptedNccl && !one.isOnKernelOf(other)
        ? Optional.of(
            "Spark encrypts its network and NCCL does not, unless "
                + names.of("unencryptedNccl")
                + " is true")
        : Optional.empty();
  }

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

  /** The path of bytes from one executor to another. */
  public enum TransferPath {
    /** Between GPUs, by NCCL. */
    NCCL("nccl"),
    /** Between GPUs of one host, or on one GPU, through memory that both map by CUDA IPC. */
    IPC("ipc"),
    /** Through shared memory on one host. */
    SHM("shm"),
    /** By TCP sockets. */
    TCP("tcp"),
    /** No path. */
    NONE("none");

    private final String text;

    TransferPath(String text) {
      this.text = text;
    }

    /** The name for messages. */
    @Override
    public String toString() {
      return text;
    }
  }

  /**
   * The path between two executors, and why no better path is used. Names no executors, so that
   * pairs in the same situation have equal choices.
   *
   * @param path the chosen path
   * @param reason in words, without a full stop
   */
  public record PathChoice(TransferPath path, String reason) {
    public PathChoice {
      Objects.requireNonNull(path, "path");
      if (reason.isBlank()) {
        throw new IllegalArgumentException("a choice without a reason");
      }
    }

    /** For example "shm (both run on one kernel)". */
    @Override
    public String toString() {
      return path + " (" + reason + ")";
    }
  }
}
