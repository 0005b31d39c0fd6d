package io.weft.collectives.nccl;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.device.Deadline;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Splits a communicator: first the host's, so that no rank continues alone in NCCL, then NCCL's
 * own. Runs on the thread whose turn it is on the communicator.
 */
final class NcclSplit {
  private final NcclCommunicator whole;
  private final CommunicatorFactory hosts;
  private final Deadline deadline;

  NcclSplit(NcclCommunicator whole, CommunicatorFactory hosts, Deadline deadline) {
    this.whole = whole;
    this.hosts = hosts;
    this.deadline = deadline;
  }

  Optional<DeviceCommunicator> run(int color, int key) {
    BootstrapRounds rounds = new BootstrapRounds(new CommunicatorBootstrap(whole.host()), deadline);
    List<SplitRequest> all =
        rounds.exchange("ncclsplit", () -> SplitRequest.of(color, key).encode()).stream()
            .map(SplitRequest::decode)
            .toList();
    AtomicReference<NcclCommunicator> part = new AtomicReference<>();
    List<NcclComm> split = new ArrayList<>();
    try {
      rounds.barrier(
          "ncclsplitopened",
          () -> {
            if (color != DeviceCommunicator.NO_COLOR) {
              part.set(open(all, SplitRequest.members(all, color)));
            }
          });
      whole.splitBoth(split, color, key, deadline);
      if (part.get() != null) {
        part.get().connect(split.get(0), split.get(1), deadline);
      }
      return Optional.ofNullable(part.get());
    } catch (RuntimeException | Error e) {
      giveUp(part.get(), split, e);
      throw e;
    }
  }

  private NcclCommunicator open(List<SplitRequest> all, List<Integer> members) {
    SplitRequest first = all.get(members.get(0));
    Bootstrap bootstrap = new PartBootstrap(whole.host(), members, first.id());
    HostCommunicatorPair pair =
        HostCommunicatorPair.create(hosts, bootstrap, whole.options(), first.pairsId());
    try {
      return new NcclCommunicator(bootstrap, whole.options(), whole.nccl(), hosts, pair);
    } catch (RuntimeException | Error e) {
      pair.close();
      throw e;
    }
  }

  /** Ends the parts that no communicator has taken, too. A second abort does nothing. */
  private void giveUp(NcclCommunicator part, List<NcclComm> split, Throwable cause) {
    if (part != null) {
      NcclCommunicators.giveUp(part, cause);
    }
    whole.nccl().device().use();
    split.forEach(NcclComm::abort);
  }
}
