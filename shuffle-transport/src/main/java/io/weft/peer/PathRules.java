package io.weft.peer;

import io.weft.memory.SettingNames;
import java.util.Comparator;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Chooses how two executors exchange blocks, and arrays of their tasks, by what both announced.
 * Both ends and the driver come to the same choice. Immutable.
 *
 * @param mode what the user wants; NCCL and CUDA IPC are used with {@link TransportMode#AUTO} only
 * @param encrypted whether Spark encrypts what it sends between executors
 * @param unencryptedNccl whether NCCL, which does not encrypt, may go between hosts even so
 * @param names of these options in messages
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
   * How blocks of shuffles get from one to the other. They lie in memory of the host, so NCCL never
   * carries them. A folder that the reader does not see, as in containers, makes shm a tcp: that is
   * found out when it reads.
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
   * How arrays of tasks get from one to the other: from GPU to GPU by NCCL or, where that cannot
   * be, by CUDA IPC on one kernel, else through memory of both hosts. Whether one end can map what
   * the other has, as from another container, is found out when they meet.
   */
  public PathChoice arrays(PathEnd one, PathEnd other) {
    Optional<String> obstacle = obstacle(one, other);
    if (obstacle.isEmpty()) {
      return new PathChoice(
          TransferPath.NCCL, "a GPU each, and NCCL " + one.gpu().nccl() + " at both ends");
    }
    return mayMap(one, other) ? mapped(obstacle.get()) : throughHosts(one, other, obstacle.get());
  }

  /** Whether each end may try to map memory of the other's GPU: two GPUs, or one, of one kernel. */
  public boolean mayMap(PathEnd one, PathEnd other) {
    return mode == TransportMode.AUTO
        && one.isOnKernelOf(other)
        && one.gpu().isThere()
        && other.gpu().isThere();
  }

  /**
   * How arrays go where NCCL does not, and the ends map each other's memory.
   *
   * @param obstacle why not NCCL
   */
  public PathChoice mapped(String obstacle) {
    return new PathChoice(TransferPath.IPC, "no NCCL: " + obstacle + "; " + ONE_KERNEL);
  }

  /**
   * How arrays go where neither NCCL nor CUDA IPC does.
   *
   * @param obstacle why not NCCL, and perhaps why not CUDA IPC
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

  /** Why NCCL is not used; empty where it is. The same whichever end is named first. */
  public Optional<String> obstacle(PathEnd one, PathEnd other) {
    if (mode != TransportMode.AUTO) {
      return Optional.of(names.of("mode") + " is not auto");
    }
    return unusable(one.gpu(), other.gpu())
        .or(() -> mismatch(one.gpu(), other.gpu()))
        .or(() -> refusal(one, other));
  }

  private static Optional<String> unusable(GpuEnd one, GpuEnd other) {
    // In an order of their own, for both ends to come to the same reason.
    return Stream.of(one, other)
        .filter(gpu -> !gpu.hasNccl())
        .map(GpuEnd::obstacle)
        .min(Comparator.naturalOrder());
  }

  private static Optional<String> mismatch(GpuEnd one, GpuEnd other) {
    if (one.uuid().equals(other.uuid())) {
      return Optional.of(
          "both are on GPU " + one.uuid() + ", and NCCL takes one rank for each GPU");
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
}
