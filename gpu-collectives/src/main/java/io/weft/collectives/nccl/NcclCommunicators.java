package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.device.Deadline;
import io.weft.device.probe.ProbeOptions;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.IntStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates communicators over NCCL. Their ids travel through the bootstrap, together with the ranks'
 * versions and GPUs, so an unsupported combination is an error on every rank. Thread-safe.
 */
public final class NcclCommunicators implements CommunicatorFactory {
  private static final Logger LOG = LoggerFactory.getLogger(NcclCommunicators.class);

  /** Limits the blocks of NCCL's kernels. */
  private static final String CHANNELS = "NCCL_MAX_CTAS";

  private final ProbeOptions libraries;
  private final NcclOptions options;
  private final CommunicatorFactory hosts;

  /**
   * Creates a factory for one rank's GPU. The first communicator loads NCCL.
   *
   * @param libraries where to search for NCCL
   * @param hosts creates the host's communicators over which ranks agree; the same kind on all
   *     ranks
   */
  public NcclCommunicators(ProbeOptions libraries, NcclOptions options, CommunicatorFactory hosts) {
    this.libraries = libraries;
    this.options = options;
    this.hosts = hosts;
  }

  @Override
  public DeviceCommunicator create(Bootstrap bootstrap, CommunicatorOptions common) {
    Deadline deadline = Deadline.after(common.timeout());
    BootstrapRounds rounds = new BootstrapRounds(bootstrap, deadline);
    check(
        rounds.exchange("ncclidentity", () -> identity().encode()).stream()
            .map(RankIdentity::decode)
            .toList());
    byte[] ids =
        rounds.exchange("ncclids", () -> bootstrap.rank() == 0 ? newIds() : new byte[0]).get(0);
    HostCommunicatorPair pair = hostCommunicators(bootstrap, common, ids);
    NcclCommunicator communicator = openTogether(rounds, bootstrap, common, pair);
    try {
      rounds.barrier(
          "ncclconnected",
          () ->
              communicator.connect(
                  Arrays.copyOf(ids, NcclUniqueId.BYTES),
                  Arrays.copyOfRange(ids, NcclUniqueId.BYTES, 2 * NcclUniqueId.BYTES),
                  deadline));
      return communicator;
    } catch (RuntimeException | Error e) {
      giveUp(communicator, e);
      throw e;
    }
  }

  private static void giveUp(NcclCommunicator communicator, Throwable cause) {
    communicator.abort("it could not be created: " + cause.getMessage());
    communicator.close();
  }

  private void check(List<RankIdentity> ranks) {
    RankIdentity.check(ranks);
    if (RankIdentity.shareGpus(ranks)
        && options.maxBlocks() == 0
        && !libraries.environment().containsKey(CHANNELS)) {
      LOG.warn(
          "Ranks share a GPU and {} is not set: if their kernels do not fit on it at the same"
              + " time they wait for each other until the timeout; 16 or less leaves room",
          CHANNELS);
    }
  }

  private RankIdentity identity() {
    return RankIdentity.of(
        NcclLibrary.load(libraries).versionNumber(),
        options.device().description().uuid(),
        options.pairsOnly(),
        options.arena() != null,
        libraries.environment());
  }

  /**
   * Two ids of NCCL, and the id of the host's communicator for pairs. NCCL keeps a thread for each
   * id until it is used, so one that is not used is empty.
   */
  private byte[] newIds() {
    byte[] host = UniqueId.create().encode().getBytes(StandardCharsets.US_ASCII);
    byte[] first = options.pairsOnly() ? new byte[NcclUniqueId.BYTES] : newId();
    byte[] ids = Arrays.copyOf(first, 2 * NcclUniqueId.BYTES + host.length);
    System.arraycopy(newId(), 0, ids, NcclUniqueId.BYTES, NcclUniqueId.BYTES);
    System.arraycopy(host, 0, ids, 2 * NcclUniqueId.BYTES, host.length);
    return ids;
  }

  private static byte[] newId() {
    byte[] id = new byte[NcclUniqueId.BYTES];
    int result = NcclFunctions.ncclGetUniqueId(id);
    if (result != NcclLibrary.SUCCESS) {
      throw NcclLibrary.failure(result, 0, "ncclGetUniqueId");
    }
    return id;
  }

  private HostCommunicatorPair hostCommunicators(
      Bootstrap bootstrap, CommunicatorOptions common, byte[] ids) {
    int start = 2 * NcclUniqueId.BYTES;
    UniqueId pairsId =
        UniqueId.decode(new String(ids, start, ids.length - start, StandardCharsets.US_ASCII));
    return HostCommunicatorPair.create(hosts, bootstrap, common, pairsId);
  }

  /** Opening streams and staging may fail on one rank. Then no rank goes on to connect in NCCL. */
  private NcclCommunicator openTogether(
      BootstrapRounds rounds,
      Bootstrap bootstrap,
      CommunicatorOptions common,
      HostCommunicatorPair pair) {
    AtomicReference<NcclCommunicator> opened = new AtomicReference<>();
    try {
      rounds.barrier("ncclopened", () -> opened.set(open(bootstrap, common, pair)));
      return opened.get();
    } catch (RuntimeException | Error e) {
      if (opened.get() != null) {
        giveUp(opened.get(), e);
      }
      throw e;
    }
  }

  private NcclCommunicator open(
      Bootstrap bootstrap, CommunicatorOptions common, HostCommunicatorPair pair) {
    try {
      return new NcclCommunicator(bootstrap, common, options, pair);
    } catch (RuntimeException | Error e) {
      pair.close();
      throw e;
    }
  }

  /**
   * The properties that ranks compare before NCCL starts, because NCCL hangs on a bad combination.
   *
   * @param version NCCL's number of its own version
   * @param gpu the rank's GPU
   * @param sharesGpu whether NCCL's environment lets several ranks use one GPU
   * @param forcesNvls whether it requires NVLink SHARP, which ranks that share a GPU cannot use
   * @param pairsOnly whether the rank only sends and receives
   * @param hasBuffers whether it has memory for buffers
   */
  record RankIdentity(
      int version,
      UUID gpu,
      boolean sharesGpu,
      boolean forcesNvls,
      boolean pairsOnly,
      boolean hasBuffers) {
    private static final int BYTES = 24;

    /**
     * The kernels of all ranks must run at the same time; otherwise they wait for each other
     * without end.
     */
    private static final int MAX_RANKS_OF_A_GPU = 2;

    private static final String NVLS = "NCCL_NVLS_ENABLE";

    /** The identity of this process, whose environment NCCL reads too. */
    static RankIdentity of(
        int version,
        UUID gpu,
        boolean pairsOnly,
        boolean hasBuffers,
        Map<String, String> environment) {
      boolean shares = NcclLibrary.sharesGpus(version, environment);
      boolean forcesNvls = "1".equals(environment.get(NVLS));
      return new RankIdentity(version, gpu, shares, forcesNvls, pairsOnly, hasBuffers);
    }

    byte[] encode() {
      return ByteBuffer.allocate(BYTES)
          .putInt(version)
          .putLong(gpu.getMostSignificantBits())
          .putLong(gpu.getLeastSignificantBits())
          .put((byte) (sharesGpu ? 1 : 0))
          .put((byte) (forcesNvls ? 1 : 0))
          .put((byte) (pairsOnly ? 1 : 0))
          .put((byte) (hasBuffers ? 1 : 0))
          .array();
    }

    static RankIdentity decode(byte[] bytes) {
      ByteBuffer in = ByteBuffer.wrap(bytes);
      return new RankIdentity(
          in.getInt(),
          new UUID(in.getLong(), in.getLong()),
          in.get() != 0,
          in.get() != 0,
          in.get() != 0,
          in.get() != 0);
    }

    /**
     * Checks that NCCL can connect these ranks.
     *
     * @param ranks by rank
     * @throws CollectiveException the same on every rank: of kind MISMATCH if ranks differ or may
     *     not share a GPU, of kind INVALID if a GPU has too many or unsuitable ranks
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
        if (ranks.get(rank).pairsOnly() != ranks.get(0).pairsOnly()) {
          throw mismatch(0, rank, "only one of rank 0 and rank " + rank + " runs collectives");
        }
        if (ranks.get(rank).hasBuffers() != ranks.get(0).hasBuffers()) {
          throw mismatch(
              0, rank, "only one of rank 0 and rank " + rank + " has memory for buffers");
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
          throw refusal(
              other,
              rank,
              both(other, rank, own)
                  + ", which NCCL does not take with "
                  + NVLS
                  + "=1: leave that out of the environment");
        }
      }
      if (others.size() >= MAX_RANKS_OF_A_GPU) {
        throw refusal(
            others.get(0),
            rank,
            both(others.get(0), rank, own)
                + " as one of more than "
                + MAX_RANKS_OF_A_GPU
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
              + NcclLibrary.SHARING_SWITCH
              + "=1 is set in the environment of all of them; these have "
              + NcclLibrary.describe(identity.version()));
    }

    private static CollectiveException refusal(int first, int second, String message) {
      return new CollectiveException(
          CollectiveException.Kind.INVALID, List.of(first, second), message);
    }

    private static CollectiveException mismatch(int first, int second, String message) {
      return new CollectiveException(
          CollectiveException.Kind.MISMATCH, List.of(first, second), message);
    }
  }
}
