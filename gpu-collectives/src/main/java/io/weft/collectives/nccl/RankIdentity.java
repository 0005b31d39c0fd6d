package io.weft.collectives.nccl;

import io.weft.collectives.fault.CollectiveException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.IntStream;

/**
 * What ranks tell each other before NCCL starts, as it answers a wrong pair of them with a hang.
 *
 * @param version NCCL's number of its own version
 * @param gpu the rank's GPU
 * @param sharesGpu whether NCCL's environment lets several ranks use one GPU
 */
record RankIdentity(int version, UUID gpu, boolean sharesGpu) {
  private static final int BYTES = 21;
  private static final String SWITCH = "NCCL_MULTI_RANK_GPU_ENABLE";

  /** Of this process, whose environment NCCL reads too. */
  static RankIdentity of(int version, UUID gpu, Map<String, String> environment) {
    boolean shares = version >= NcclLibrary.SHARES_GPUS && "1".equals(environment.get(SWITCH));
    return new RankIdentity(version, gpu, shares);
  }

  byte[] encode() {
    return ByteBuffer.allocate(BYTES)
        .putInt(version)
        .putLong(gpu.getMostSignificantBits())
        .putLong(gpu.getLeastSignificantBits())
        .put((byte) (sharesGpu ? 1 : 0))
        .array();
  }

  static RankIdentity decode(byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    return new RankIdentity(in.getInt(), new UUID(in.getLong(), in.getLong()), in.get() != 0);
  }

  /**
   * Finds ranks that NCCL cannot bring together.
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
      UUID gpu = ranks.get(rank).gpu();
      int before = rank;
      IntStream.range(0, rank)
          .filter(other -> ranks.get(other).gpu().equals(gpu))
          .filter(other -> !ranks.get(other).sharesGpu() || !ranks.get(before).sharesGpu())
          .findFirst()
          .ifPresent(other -> refuseSharedGpu(other, before, ranks.get(before)));
    }
  }

  private static void refuseSharedGpu(int first, int second, RankIdentity identity) {
    throw mismatch(
        first,
        second,
        "rank "
            + first
            + " and rank "
            + second
            + " are both on GPU "
            + identity.gpu()
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
