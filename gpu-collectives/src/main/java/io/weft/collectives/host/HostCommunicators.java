package io.weft.collectives.host;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.Topology;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.Listener;
import io.weft.collectives.bootstrap.RankFolder;
import io.weft.collectives.bootstrap.RankFolder.Liveness;
import io.weft.collectives.host.ControlBlock.ControlLayout;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.HostOptions.KernelCopy;
import io.weft.device.Deadline;
import io.weft.memory.MappedSegment;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates communicators of the host implementation. All ranks load the items of the {@link
 * Preloader} before the communicator exists. Thread-safe.
 */
public final class HostCommunicators implements CommunicatorFactory {
  private final HostOptions options;
  private final Preloader preparation;

  /** A factory that uses these options for every communicator. */
  public HostCommunicators(HostOptions options) {
    this(options, Preloader.ofHost());
  }

  /**
   * A factory for gangs that load more items.
   *
   * @param preparation the items to load before a gang starts, those of {@link Preloader#ofHost}
   *     and more
   */
  public HostCommunicators(HostOptions options, Preloader preparation) {
    this.options = options;
    this.preparation = preparation;
  }

  @Override
  public Communicator create(Bootstrap bootstrap, CommunicatorOptions common) {
    return new HostSetup(bootstrap, common, options, preparation).create();
  }

  /**
   * Creates one rank's end of a communicator, in rounds with all other ranks: exchange addresses,
   * find the hosts, reserve segments, map those of the host, connect to the other hosts. Used once.
   */
  static final class HostSetup {
    private static final Logger LOG = LoggerFactory.getLogger(HostSetup.class);
    private static final String CONTROL = "control";

    /** The reasons against reads by the kernel that this process has logged. */
    static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

    private final Bootstrap bootstrap;
    private final CommunicatorOptions common;
    private final HostOptions options;
    private final Preloader preparation;
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
        Preloader preparation) {
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
     * No rank gets past this round before all have loaded the code that a running gang must not
     * wait for.
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
          HostIdentity.PROCESS.toString(),
          ProcessMemory.own(HostIdentity.PROCESS),
          Runtime.getRuntime().availableProcessors(),
          options.kernelCopy(),
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
          rounds
              .exchange("hosts", () -> HostDiscovery.reachable(addresses, own).toByteArray())
              .stream()
              .map(BitSet::valueOf)
              .toList();
      topology = HostDiscovery.topology(reachable);
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
      List<Integer> local = topology.hosts().get(topology.hostOf(bootstrap.rank()));
      BufferSizes sizes = options.sizes().forRanks(local.size());
      ControlLayout layout = new ControlLayout(sizes, local.size());
      List<MappedSegment> own = new ArrayList<>();
      rounds.barrier("segments", () -> own.add(resources.reserve(folder, CONTROL, layout.bytes())));
      List<LocalPeers.Peer> mapped = new ArrayList<>();
      List<byte[]> refusals =
          rounds.exchange(
              "mapped",
              () -> {
                for (int rank : local) {
                  mapped.add(map(rank, own.get(0), layout));
                }
                if (local.size() > 1) {
                  LibraryCopy.load();
                }
                return kernelCopyRefusal(local).orElse("").getBytes(StandardCharsets.UTF_8);
              });
      folder.deleteSegment(own.get(0).file());
      HostCommunicator communicator =
          new HostCommunicator(
              bootstrap,
              common,
              sizes,
              options.symmetricOptions(),
              topology,
              new LocalPeers(
                  bootstrap.rank(), mapped, kernelCopy(local, refusals), isCrowded(local)),
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

    /** Why this rank does not read the memory of all ranks of its host by the kernel. */
    private Optional<String> kernelCopyRefusal(List<Integer> local) {
      if (options.kernelCopy() == KernelCopy.NEVER) {
        return Optional.of("the options forbid it");
      }
      ProcessMemory memory = new ProcessMemory();
      for (int rank : local) {
        RankAddress address = addresses.get(rank);
        Optional<String> refusal =
            rank == bootstrap.rank()
                ? Optional.empty()
                : memory.refusal(address.location(), address.processId());
        if (refusal.isPresent()) {
          return refusal;
        }
      }
      return Optional.empty();
    }

    /**
     * Decides from what all ranks of the host found out, so that all decide the same. Logs each
     * reason once.
     */
    private KernelCopy kernelCopy(List<Integer> local, List<byte[]> refusals) {
      for (int rank : local) {
        String reason = new String(refusals.get(rank), StandardCharsets.UTF_8);
        if (!reason.isEmpty()) {
          if (LOGGED.add(reason)) {
            LOG.info(
                "collectives read no private buffers by the kernel, because rank {}"
                    + " cannot read the memory of the others: {}",
                rank,
                reason);
          }
          return KernelCopy.NEVER;
        }
      }
      return local.stream().allMatch(rank -> addresses.get(rank).kernelCopy() == KernelCopy.ALWAYS)
          ? KernelCopy.ALWAYS
          : KernelCopy.MEASURED;
    }

    private boolean isCrowded(List<Integer> local) {
      return local.stream().anyMatch(rank -> addresses.get(rank).processors() < local.size());
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

    private LocalPeers.Peer map(int rank, MappedSegment own, ControlLayout layout)
        throws IOException {
      if (rank == bootstrap.rank()) {
        return new LocalPeers.Peer(
            rank, new ControlBlock(own.address(), layout), Liveness.OWN, processOf(rank));
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
      boolean inThisProcess = address.process().equals(HostIdentity.PROCESS.toString());
      Liveness life =
          inThisProcess
              ? Liveness.OWN
              : resources.add(Liveness.ofOther(Path.of(address.folder(), RankFolder.LOCK)));
      return new LocalPeers.Peer(
          rank, new ControlBlock(segment.address(), layout), life, processOf(rank));
    }

    private int processOf(int rank) {
      return Math.toIntExact(addresses.get(rank).location().id());
    }

    /** The identities of this kernel and this process. */
    static final class HostIdentity {
      private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

      /** The identity of this process, different after a restart. */
      static final UUID PROCESS = UUID.randomUUID();

      private HostIdentity() {}

      /**
       * The identity of the running kernel since its boot. If the kernel does not provide one, only
       * ranks of this process count as ranks of its host.
       */
      static String ofKernel() {
        try {
          return Files.readString(BOOT_ID).strip();
        } catch (IOException e) {
          return PROCESS.toString();
        }
      }
    }

    /**
     * A rank's description of itself for the others, when a communicator is created.
     *
     * @param hostIdentity ranks with the same one may share memory
     * @param process differs between processes, also between restarts with one process id
     * @param location of the process, for readers of its memory
     * @param processors that it may use
     * @param kernelCopy its option
     * @param folder of its segments
     * @param token content of the token file in the folder
     */
    record RankAddress(
        String hostIdentity,
        String process,
        ProcessMemory.Location location,
        int processors,
        KernelCopy kernelCopy,
        String folder,
        String token) {
      /** Increases when the meaning of any message between ranks changes. */
      private static final int VERSION = 5;

      byte[] encode() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(VERSION);
        out.writeUTF(hostIdentity);
        out.writeUTF(process);
        out.writeLong(location.id());
        out.writeLong(location.probe());
        out.writeInt(processors);
        out.writeUTF(kernelCopy.name());
        out.writeUTF(folder);
        out.writeUTF(token);
        return bytes.toByteArray();
      }

      static RankAddress decode(byte[] bytes) throws IOException {
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
        int version = in.readInt();
        if (version != VERSION) {
          throw new IOException(
              "a rank speaks version " + version + " of the host collectives, this one " + VERSION);
        }
        return new RankAddress(
            in.readUTF(),
            in.readUTF(),
            new ProcessMemory.Location(in.readLong(), in.readLong()),
            in.readInt(),
            decodeKernelCopy(in.readUTF()),
            in.readUTF(),
            in.readUTF());
      }

      private static KernelCopy decodeKernelCopy(String name) throws IOException {
        try {
          return KernelCopy.valueOf(name);
        } catch (IllegalArgumentException e) {
          throw new IOException("a rank has option " + name + " of copies by the kernel", e);
        }
      }

      UUID processId() {
        return UUID.fromString(process);
      }
    }

    /**
     * Finds out which ranks share a host. The same kernel is not enough, since containers on one
     * kernel may have different file systems. Each of two ranks must also read the other's token in
     * the other's folder.
     */
    static final class HostDiscovery {
      private HostDiscovery() {}

      /** The ranks whose token this rank reads in their folder, itself included. */
      static BitSet reachable(List<RankAddress> ranks, RankAddress own) {
        BitSet reachable = new BitSet(ranks.size());
        for (int rank = 0; rank < ranks.size(); rank++) {
          RankAddress other = ranks.get(rank);
          reachable.set(rank, other.hostIdentity().equals(own.hostIdentity()) && readsToken(other));
        }
        return reachable;
      }

      private static boolean readsToken(RankAddress rank) {
        try {
          return Files.readString(Path.of(rank.folder(), RankFolder.TOKEN)).equals(rank.token());
        } catch (IOException e) {
          return false;
        }
      }

      /**
       * Groups the ranks by host: two ranks are on one host if they reach each other and the same
       * set of ranks. The result is the same on every rank.
       *
       * @param reachable by rank
       */
      static Topology topology(List<BitSet> reachable) {
        List<List<Integer>> hosts = new ArrayList<>();
        for (int rank = 0; rank < reachable.size(); rank++) {
          List<Integer> host = hostOf(rank, hosts, reachable);
          if (host.isEmpty()) {
            hosts.add(host);
          }
          host.add(rank);
        }
        return new Topology(hosts);
      }

      private static List<Integer> hostOf(
          int rank, List<List<Integer>> hosts, List<BitSet> reachable) {
        for (List<Integer> host : hosts) {
          int first = host.get(0);
          boolean mutual = reachable.get(rank).get(first) && reachable.get(first).get(rank);
          if (mutual && reachable.get(rank).equals(reachable.get(first))) {
            return host;
          }
        }
        return new ArrayList<>();
      }
    }
  }
}
