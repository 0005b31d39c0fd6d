package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.nccl.HostCommunicatorPair.DerivedBootstrap;
import io.weft.device.Deadline;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates a communicator of the surviving ranks of another. The ranks meet, and shrink NCCL only if
 * all of them can. Runs on one thread.
 */
final class NcclShrink {
  private static final Logger LOG = LoggerFactory.getLogger(NcclShrink.class);
  private static final int MAX_REASON = 1000;

  private final NcclCommunicator whole;
  private final Bootstrap survivors;
  private final CommunicatorOptions common;
  private final NcclOptions options;
  private final CommunicatorFactory hosts;
  private final Deadline deadline;

  /**
   * Timeout of NCCL's part only. If NCCL hangs, time is left to hear from the others and to start
   * again.
   */
  private final Duration timeout;

  private final BootstrapRounds rounds;

  NcclShrink(
      NcclCommunicator whole,
      Bootstrap survivors,
      CommunicatorOptions common,
      NcclOptions options,
      CommunicatorFactory hosts) {
    this.whole = whole;
    this.survivors = survivors;
    this.common = common;
    this.options = options;
    this.hosts = hosts;
    this.deadline = Deadline.after(common.timeout());
    this.timeout = common.timeout().dividedBy(3);
    this.rounds = new BootstrapRounds(survivors, deadline);
  }

  /**
   * Runs the shrink on all surviving ranks.
   *
   * @param fallback creates a new communicator if NCCL cannot shrink, or fails
   */
  DeviceCommunicator run(Supplier<DeviceCommunicator> fallback) {
    List<ShrinkRequest> all =
        rounds
            .exchange(
                "ncclshrink",
                () -> {
                  whole.retire(deadline);
                  return ShrinkRequest.of(whole).encode();
                })
            .stream()
            .map(ShrinkRequest::decode)
            .toList();
    ShrinkRequest.check(all);
    Optional<String> obstacle = ShrinkRequest.obstacle(all);
    if (obstacle.isPresent()) {
      return insteadOf(obstacle.get(), fallback);
    }
    return attempt(all, fallback);
  }

  private DeviceCommunicator insteadOf(String obstacle, Supplier<DeviceCommunicator> fallback) {
    LOG.info(
        "Communicator {} is not shrunk to {} ranks, a new one is made: {}",
        whole.id(),
        survivors.nranks(),
        obstacle);
    return fallback.get();
  }

  /** Tries to shrink. All ranks learn the outcome on the others. */
  private DeviceCommunicator attempt(
      List<ShrinkRequest> all, Supplier<DeviceCommunicator> fallback) {
    NcclCommunicator rest = null;
    String failure = "";
    try {
      rest = shrink(all);
    } catch (RuntimeException e) {
      failure = e instanceof CollectiveException ? String.valueOf(e.getMessage()) : e.toString();
    }
    Optional<String> reason;
    try {
      reason = settle(failure);
    } catch (RuntimeException | Error e) {
      discard(rest, e);
      throw e;
    }
    if (reason.isEmpty()) {
      LOG.info("Communicator {} continues as {}, shrunk by NCCL", whole.id(), rest);
      return rest;
    }
    discard(rest, new IllegalStateException(reason.get()));
    return insteadOf(reason.get(), fallback);
  }

  private Optional<String> settle(String failure) {
    String mine = failure.substring(0, Math.min(MAX_REASON, failure.length()));
    return rounds.exchange("ncclshrunk", () -> mine.getBytes(StandardCharsets.UTF_8)).stream()
        .map(reason -> new String(reason, StandardCharsets.UTF_8))
        .filter(reason -> !reason.isEmpty())
        .findFirst();
  }

  private static void discard(NcclCommunicator rest, Throwable cause) {
    if (rest != null) {
      NcclCommunicators.giveUp(rest, cause);
    }
  }

  private NcclCommunicator shrink(List<ShrinkRequest> all) {
    AtomicReference<NcclCommunicator> opened = new AtomicReference<>();
    List<NcclComm> comms = new ArrayList<>();
    try {
      rounds.barrier("ncclrestopened", () -> opened.set(open(all.get(0))));
      NcclCommunicator rest = opened.get();
      Deadline shrunk = Deadline.after(timeout);
      whole.shrinkBoth(comms, ShrinkRequest.missing(all), shrunk, rest::requireUsable);
      rest.connect(comms.get(0), comms.get(1), shrunk);
      return rest;
    } catch (RuntimeException | Error e) {
      discard(opened.get(), e);
      options.device().use();
      comms.forEach(NcclComm::abort);
      throw e;
    }
  }

  private NcclCommunicator open(ShrinkRequest first) {
    Bootstrap bootstrap = new DerivedBootstrap(survivors, first.id(), "rest");
    HostCommunicatorPair pair =
        HostCommunicatorPair.create(hosts, bootstrap, common, first.pairsId());
    try {
      return new NcclCommunicator(bootstrap, common, options, hosts, pair);
    } catch (RuntimeException | Error e) {
      pair.close();
      throw e;
    }
  }

  /**
   * The message of a surviving rank to the other survivors of a communicator.
   *
   * @param whole the broken communicator
   * @param rank this one's rank there
   * @param nranks how many there were
   * @param obstacle why this rank cannot shrink it; empty if it can
   * @param id for the host's communicator for collectives; the id of the first rank is used
   * @param pairsId for the one for pairs
   */
  record ShrinkRequest(
      String whole, int rank, int nranks, String obstacle, UniqueId id, UniqueId pairsId) {
    static ShrinkRequest of(NcclCommunicator whole) {
      return new ShrinkRequest(
          whole.id().encode(),
          whole.rank(),
          whole.nranks(),
          whole.whyNoShrinking().orElse(""),
          UniqueId.create(),
          UniqueId.create());
    }

    byte[] encode() throws IOException {
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try (DataOutputStream out = new DataOutputStream(bytes)) {
        out.writeUTF(whole);
        out.writeInt(rank);
        out.writeInt(nranks);
        out.writeUTF(obstacle);
        out.writeUTF(id.encode());
        out.writeUTF(pairsId.encode());
      }
      return bytes.toByteArray();
    }

    static ShrinkRequest decode(byte[] message) {
      try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(message))) {
        return new ShrinkRequest(
            in.readUTF(),
            in.readInt(),
            in.readInt(),
            in.readUTF(),
            UniqueId.decode(in.readUTF()),
            UniqueId.decode(in.readUTF()));
      } catch (IOException e) {
        throw new IllegalArgumentException("a rank sent a damaged request to shrink", e);
      }
    }

    /**
     * Checks that the messages match.
     *
     * @param all by new rank
     * @throws CollectiveException the same on every rank
     */
    static void check(List<ShrinkRequest> all) {
      ShrinkRequest first = all.get(0);
      for (int rank = 1; rank < all.size(); rank++) {
        ShrinkRequest other = all.get(rank);
        if (!other.whole().equals(first.whole())) {
          throw new CollectiveException(
              Kind.MISMATCH,
              List.of(0, rank),
              "rank 0 was rank %d of communicator %s but rank %d was rank %d of %s"
                  .formatted(first.rank(), first.whole(), rank, other.rank(), other.whole()));
        }
      }
      if (all.size() >= first.nranks()) {
        throw CollectiveException.invalid(
            "all %d ranks of communicator %s are present: there is no rank to leave out"
                .formatted(first.nranks(), first.whole()));
      }
    }

    /** Why one of them cannot shrink the communicator; empty if all can. */
    static Optional<String> obstacle(List<ShrinkRequest> all) {
      for (int rank = 0; rank < all.size(); rank++) {
        ShrinkRequest each = all.get(rank);
        if (!each.obstacle().isEmpty()) {
          return Optional.of("on rank " + each.rank() + ", " + each.obstacle());
        }
        if (rank > 0 && each.rank() <= all.get(rank - 1).rank()) {
          return Optional.of(
              "its ranks are in another order than before, but NCCL keeps the order");
        }
      }
      return Optional.empty();
    }

    /** The missing ranks, ascending. */
    static List<Integer> missing(List<ShrinkRequest> all) {
      List<Integer> there = all.stream().map(ShrinkRequest::rank).toList();
      return IntStream.range(0, all.get(0).nranks())
          .boxed()
          .filter(rank -> !there.contains(rank))
          .toList();
    }
  }
}
