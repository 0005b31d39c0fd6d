package io.weft.collectives.host;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.Topology;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.Preparation;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.collectives.net.Listener;
import io.weft.device.Deadline;
import io.weft.memory.MappedSegment;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

/**
 * Creates one rank's end of a communicator, in rounds with all other ranks: exchange addresses,
 * find the hosts, reserve segments, map those of the host, connect to the other hosts. Used once.
 */
final class HostSetup {
  private static final String CONTROL = "control";

  private final Bootstrap bootstrap;
  private final CommunicatorOptions common;
  private final HostOptions options;
  private final Preparation preparation;
  private final Deadline deadline;
  private final BootstrapRounds rounds;
  private final HostResources resources = new HostResources();
  private RankFolder folder;
  private List<RankAddress> addresses;
  private Topology topology;

  HostSetup(
      Bootstrap bootstrap,
      CommunicatorOptions common,
      HostOptions options,
      Preparation preparation) {
    this.bootstrap = bootstrap;
    this.common = common;
    this.options = options;
    this.preparation = preparation;
    this.deadline = Deadline.after(common.timeout());
    this.rounds = new BootstrapRounds(bootstrap, deadline);
  }

  HostCommunicator create() {
    try {
      exchangeAddresses();
      findHosts();
      return connect();
    } catch (RuntimeException | Error e) {
      closeAfter(e);
      throw e;
    }
  }

  private void closeAfter(Throwable failure) {
    try {
      resources.close();
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  /**
   * No rank gets past this round before all have loaded the code that a running gang must not wait
   * for.
   */
  private void exchangeAddresses() {
    List<byte[]> messages =
        rounds.exchange(
            "addresses",
            () -> {
              preparation.load(bootstrap.rank());
              return announce().encode();
            });
    addresses = messages.stream().map(HostSetup::decode).toList();
  }

  private RankAddress announce() throws IOException {
    folder = resources.add(RankFolder.create(options.folder(), bootstrap.id(), bootstrap.rank()));
    return new RankAddress(
        options.hostIdentity().orElseGet(HostIdentity::ofKernel),
        HostIdentity.PROCESS,
        folder.path().toString(),
        folder.token());
  }

  private static RankAddress decode(byte[] message) {
    try {
      return RankAddress.decode(message);
    } catch (IOException e) {
      throw new CollectiveException(Kind.MISMATCH, List.of(), e.getMessage(), e);
    }
  }

  private void findHosts() {
    RankAddress own = addresses.get(bootstrap.rank());
    List<BitSet> reachable =
        rounds.exchange("hosts", () -> HostMap.reachable(addresses, own).toByteArray()).stream()
            .map(BitSet::valueOf)
            .toList();
    topology = HostMap.topology(reachable);
    if (!topology.isOneHost()) {
      rounds.barrier("network", this::requireNetwork);
    }
  }

  /** Every rank checks its own machine, and a failure of one is reported to all. */
  private void requireNetwork() {
    options
        .networkRefusal()
        .ifPresent(
            reason -> {
              throw new CollectiveException(
                  Kind.IO,
                  List.of(bootstrap.rank()),
                  "the ranks are on several hosts or cannot read each other's folders: "
                      + topology.hosts()
                      + ", but on rank "
                      + bootstrap.rank()
                      + " "
                      + reason);
            });
  }

  private HostCommunicator connect() {
    List<Integer> neighbours = topology.hosts().get(topology.hostOf(bootstrap.rank()));
    BufferSizes sizes = options.sizes().forRanks(neighbours.size());
    ControlLayout layout = new ControlLayout(sizes, neighbours.size());
    List<MappedSegment> own = new ArrayList<>();
    rounds.barrier("segments", () -> own.add(resources.reserve(folder, CONTROL, layout.bytes())));
    List<Neighbours.Peer> mapped = new ArrayList<>();
    rounds.barrier(
        "mapped",
        () -> {
          for (int rank : neighbours) {
            mapped.add(map(rank, own.get(0), layout));
          }
        });
    folder.deleteSegment(own.get(0).file());
    HostCommunicator communicator =
        new HostCommunicator(
            bootstrap,
            common,
            sizes,
            topology,
            new Neighbours(bootstrap.rank(), mapped),
            topology.isOneHost() ? RemoteRanks.NONE : connectRemote(),
            resources);
    start(communicator);
    return communicator;
  }

  private void start(HostCommunicator communicator) {
    try {
      communicator.start();
    } catch (IOException e) {
      throw new CollectiveException(
          Kind.IO,
          List.of(bootstrap.rank()),
          "rank "
              + bootstrap.rank()
              + " cannot exchange messages with the ranks of other hosts: "
              + e,
          e);
    }
  }

  /** The listener is opened within a round, so that a failure to do so reaches all ranks. */
  private RemoteRanks connectRemote() {
    RemoteSetup setup = new RemoteSetup(bootstrap, topology, deadline);
    List<Listener> listeners = new ArrayList<>();
    List<byte[]> addresses =
        rounds.exchange(
            "listening",
            () -> {
              listeners.add(resources.add(Listener.open(options.bindHost())));
              return RemoteSetup.encode(listeners.get(0).address());
            });
    List<RemoteRanks> connected = new ArrayList<>();
    rounds.barrier(
        "connected",
        () -> {
          connected.add(setup.connect(listeners.get(0), addresses, resources));
          listeners.get(0).close();
        });
    return connected.get(0);
  }

  private Neighbours.Peer map(int rank, MappedSegment own, ControlLayout layout)
      throws IOException {
    if (rank == bootstrap.rank()) {
      return new Neighbours.Peer(rank, new ControlBlock(own.address(), layout), Life.OWN);
    }
    RankAddress address = addresses.get(rank);
    MappedSegment segment = resources.attach(Path.of(address.folder(), CONTROL));
    if (segment.size() != layout.bytes()) {
      throw new IOException(
          "rank "
              + rank
              + " reserved "
              + segment.size()
              + " bytes, expected "
              + layout.bytes()
              + "; all ranks need the same buffer sizes");
    }
    boolean inThisProcess = address.process().equals(HostIdentity.PROCESS);
    Life life =
        inThisProcess
            ? Life.OWN
            : resources.add(Life.ofOther(Path.of(address.folder(), RankFolder.LOCK)));
    return new Neighbours.Peer(rank, new ControlBlock(segment.address(), layout), life);
  }
}
