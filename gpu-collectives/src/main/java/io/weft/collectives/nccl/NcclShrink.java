package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.fault.CollectiveException;
import io.weft.device.Deadline;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates a communicator of the surviving ranks of another. The ranks meet, and shrink NCCL only if
 * all of them can. Runs on one thread.
 */
final class NcclShrink {
  private static final Logger LOG = LoggerFactory.getLogger(NcclShrink.class);
  private static final int MOST_REASON = 1000;

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
      LOG.info("Communicator {} goes on as {}, shrunk by NCCL", whole.id(), rest);
      return rest;
    }
    discard(rest, new IllegalStateException(reason.get()));
    return insteadOf(reason.get(), fallback);
  }

  private Optional<String> settle(String failure) {
    String mine = failure.substring(0, Math.min(MOST_REASON, failure.length()));
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
      whole.shrinkBoth(comms, ShrinkRequest.missing(all), shrunk, rest::requireWell);
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
    Bootstrap meeting = new NamedMeeting(survivors, first.id(), "rest");
    HostCommunicatorPair pair =
        HostCommunicatorPair.create(hosts, meeting, common, first.pairsId());
    try {
      return new NcclCommunicator(meeting, common, options, hosts, pair);
    } catch (RuntimeException | Error e) {
      pair.close();
      throw e;
    }
  }
}
