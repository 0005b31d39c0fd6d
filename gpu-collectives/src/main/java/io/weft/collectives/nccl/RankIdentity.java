package io.weft.collectives.nccl;

import io.weft.collectives.fault.CollectiveException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.IntStream;

/**
 * The properties that ranks compare before NCCL starts, because NCCL hangs on a bad combination.
 *
 * @param version NCCL's number of its own version
 * @param gpu the rank's GPU
 * @param sharesGpu whether NCCL's environment lets several ranks use one GPU
 * @param forcesNvls whether it requires NVLink SHARP, which ranks that share a GPU cannot use
 */
record RankIdentity(int version, UUID gpu, boolean sharesGpu, boolean forcesNvls) {
  private static final int BYTES = 22;

  /**
   * The kernels of all ranks must run at the same time; otherwise they wait for each other without
   * end.
   */
  private static final int MOST_RANKS_OF_A_GPU = 2;

  private static final String SWITCH = "NCCL_MULTI_RANK_GPU_ENABLE";
  private static final String NVLS = "NCCL_NVLS_ENABLE";

  /** The identity of this process, whose environment NCCL reads too. */
  static RankIdentity of(int version, UUID gpu, Map<String, String> environment) {
    boolean shares = version >= NcclLibrary.SHARES_GPUS && "1".equals(environment.get(SWITCH));
    return new RankIdentity(version, gpu, shares, "1".equals(environment.get(NVLS)));
  }

  byte[] encode() {
    return ByteBuffer.allocate(BYTES)
        .putInt(version)
        .putLong(gpu.getMostSignificantBits())
        .putLong(gpu.getLeastSignificantBits())
        .put((byte) (sharesGpu ? 1 : 0))
        .put((byte) (forcesNvls ? 1 : 0))
        .array();
  }

  static RankIdentity decode(byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    return new RankIdentity(
        in.getInt(), new UUID(in.getLong(), in.getLong()), in.get() != 0, in.get() != 0);
  }

  /**
   * Checks that NCCL can connect these ranks.
   *
   * @param ranks by rank
   * @throws CollectiveException of kind MISMATCH, the same on every rank
   */
  static void check(List<RankIdentity> ranks) {
    for (int rank = 1; rank < ranks.size(); rank++) {
      if (ranks.get(rank).version() != ranks.get(0).version()) {
        throw mismatch(
            0,
            rank,
            "rank 0 has NCCL "
                + NcclLibrary.describe(ranks.get(0).version())
                + " but rank "
                + rank
                + " has "
                + NcclLibrary.describe(ranks.get(rank).version())
                + ": all ranks need the same");
      }
      checkGpu(ranks, rank);
    }
  }

  private static void checkGpu(List<RankIdentity> ranks, int rank) {
    RankIdentity own = ranks.get(rank);
    List<Integer> others =
        IntStream.range(0, rank)
            .filter(other -> ranks.get(other).gpu().equals(own.gpu()))
            .boxed()
            .toList();
    for (int other : others) {
      RankIdentity before = ranks.get(other);
      if (!before.sharesGpu() || !own.sharesGpu()) {
        refuseSharedGpu(other, rank, own);
      }
      if (before.forcesNvls() || own.forcesNvls()) {
        throw mismatch(
            other,
            rank,
            both(other, rank, own)
                + ", which NCCL does not take with "
                + NVLS
                + "=1: leave that out of the environment");
      }
    }
    if (others.size() >= MOST_RANKS_OF_A_GPU) {
      throw mismatch(
          others.get(0),
          rank,
          both(others.get(0), rank, own)
              + " as one of more than "
              + MOST_RANKS_OF_A_GPU
              + ": their kernels would wait for each other, so use fewer ranks for each GPU");
    }
  }

  /** Whether two of them are on one GPU. */
  static boolean shareGpus(List<RankIdentity> ranks) {
    return ranks.stream().map(RankIdentity::gpu).distinct().count() < ranks.size();
  }

  private static String both(int first, int second, RankIdentity identity) {
    return "rank " + first + " and rank " + second + " are both on GPU " + identity.gpu();
  }

  private static void refuseSharedGpu(int first, int second, RankIdentity identity) {
    throw mismatch(
        first,
        second,
        both(first, second, identity)
            + ": NCCL takes one rank for each GPU, and from "
            + NcclLibrary.describe(NcclLibrary.SHARES_GPUS)
            + " on several where "
            + SWITCH
            + "=1 is set in the environment of all of them; these have "
            + NcclLibrary.describe(identity.version()));
  }

  private static CollectiveException mismatch(int first, int second, String message) {
    return new CollectiveException(
        CollectiveException.Kind.MISMATCH, List.of(first, second), message);
  }
}
