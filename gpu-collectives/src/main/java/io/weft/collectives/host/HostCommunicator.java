package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.DataType;
import io.weft.collectives.InPlaceRegions;
import io.weft.collectives.MovedBuffers;
import io.weft.collectives.Operation;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.Recording;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.Topology;
import io.weft.collectives.host.CollectiveEngine.TrivialEngine;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.MessageChannel.ByteLink.Traffic;
import io.weft.collectives.host.PointToPoint.PairMessages;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.collectives.host.SymmetricTable.HostRegions;
import io.weft.collectives.symmetric.NoSymmetricRoomException;
import io.weft.collectives.symmetric.SharedBuffer;
import io.weft.collectives.symmetric.StepRecording;
import io.weft.collectives.symmetric.SymmetricArena;
import io.weft.collectives.symmetric.SymmetricOptions;
import io.weft.device.Deadline;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One rank of the host implementation. */
final class HostCommunicator extends OrderedCommunicator implements InPlaceRegions {
  private static final Logger LOG = LoggerFactory.getLogger(HostCommunicator.class);

  private static final long MAX_DIAGNOSIS_NANOS = 1_000_000_000;

  private final Topology topology;
  private final LocalPeers localPeers;
  private final RemoteRanks remotes;
  private final HostResources resources;
  private final Call call = new Call();
  private final WaitLoop waiting;
  private final CollectiveEngine engine;
  private final PairMessages pairs;
  private final HostRegions regions;
  private final HostSymmetric symmetric;
  private long collectives;

  /** Guards {@link #closed} and the state that this rank publishes to others. */
  private final Object announcing = new Object();

  private boolean closed;

  HostCommunicator(
      Bootstrap bootstrap,
      CommunicatorOptions common,
      BufferSizes sizes,
      SymmetricOptions symmetric,
      Topology topology,
      LocalPeers localPeers,
      RemoteRanks remotes,
      HostResources resources) {
    super(Bootstrapped.of(bootstrap), common);
    this.topology = topology;
    this.localPeers = localPeers;
    this.remotes = remotes;
    this.resources = resources;
    HostWaitCheck watch =
        new HostWaitCheck(rank(), call, this::failure, localPeers, remotes, diagnosisNanos());
    this.waiting = new WaitLoop(watch, localPeers.size(), !remotes.isEmpty());
    this.regions = new HostRegions(rank(), localPeers.ranks());
    this.symmetric = new HostSymmetric(this, symmetric);
    this.engine = engine(sizes);
    this.pairs = new PairMessages(rank(), nranks(), pointToPoint(Traffic.PAIRS, sizes));
  }

  /** The time reserved before the deadline for a diagnosis, which takes messages to other hosts. */
  private long diagnosisNanos() {
    return remotes.isEmpty() ? 0 : Math.min(MAX_DIAGNOSIS_NANOS, timeout().toNanos() / 10);
  }

  private CollectiveEngine engine(BufferSizes sizes) {
    PointToPoint messages = pointToPoint(Traffic.COLLECTIVES, sizes);
    List<Integer> host = topology.hosts().get(topology.hostOf(rank()));
    CollectiveEngine local = new TrivialEngine();
    if (host.size() > 1) {
      HostRanks hostRanks = localPeers.hostRanks(waiting);
      RankGroup members = new RankGroup(rank(), host, messages);
      Optional<KernelCopyCollectives> kernel =
          localPeers
              .readableProcesses()
              .map(processes -> new KernelCopyCollectives(hostRanks, waiting, processes));
      Optional<KernelCopyTrial> trial =
          kernel
              .filter(copies -> hostRanks.size() == 2)
              .map(
                  copies ->
                      new KernelCopyTrial(
                          hostRanks,
                          copies,
                          sizes.stageBytes(),
                          localPeers.kernelCopy(),
                          System::nanoTime));
      local =
          new SharedMemoryEngine(
              hostRanks, regions.table(), members, sizes, localPeers.areCrowded(), kernel, trial);
    }
    if (topology.isOneHost()) {
      return local;
    }
    if (topology.isAllApart()) {
      List<Integer> all = topology.hosts().stream().map(ranks -> ranks.get(0)).toList();
      return new NetworkEngine(new RankGroup(rank(), all, messages));
    }
    return new HierarchicalEngine(rank(), nranks(), topology, local, messages);
  }

  private PointToPoint pointToPoint(Traffic traffic, BufferSizes sizes) {
    return new PointToPoint(
        rank(),
        nranks(),
        peer ->
            localPeers.has(peer)
                ? localPeers.link(peer, traffic, sizes.ringBytes())
                : remotes.link(peer, traffic),
        waiting);
  }

  /** Starts to exchange control messages with the ranks of other hosts. */
  void start() throws IOException {
    remotes.start(this::ownWaiting, this::adoptRemote);
  }

  /** Called by the agent's thread, which may still run while this communicator is closed. */
  Optional<WaitStatus> ownWaiting() {
    synchronized (announcing) {
      return closed ? Optional.empty() : localPeers.mine().waiting();
    }
  }

  /**
   * Adopts a failure of a rank on another host. That rank has told the ranks of this host itself.
   */
  private void adoptRemote(CollectiveException cause) {
    if (adopt(cause)) {
      synchronized (announcing) {
        if (!closed) {
          localPeers.mine().fail(cause);
        }
      }
    }
  }

  @Override
  public Topology topology() {
    return topology;
  }

  @Override
  public SymmetricBuffer symmetric(DataType type, long count) {
    return symmetric.allocate(type, count, reason -> privateBuffer(type, count, reason));
  }

  @Override
  public Recording record(MovedBuffers moved, Consumer<Communicator> body) {
    return StepRecording.record(this, moved, body);
  }

  @Override
  public int addRegion(long bytes, List<Long> bases) {
    return regions.add(bytes, bases);
  }

  @Override
  public void removeRegion(int region) {
    regions.remove(region);
  }

  @Override
  public Optional<CollectiveException> peerFailure(int peer) {
    synchronized (announcing) {
      if (closed) {
        return failure();
      }
      return localPeers.has(peer) ? localPeers.end(peer) : remotes.end(peer);
    }
  }

  @Override
  public boolean isAwaitedBy(int peer) {
    synchronized (announcing) {
      return !closed
          && localPeers.has(peer)
          && localPeers.waiting(peer).filter(status -> status.rank() == rank()).isPresent();
    }
  }

  @Override
  protected Algorithm execute(Operation operation, Deadline deadline) {
    if (operation.kind().isCollective()) {
      call.start(operation.signature(), collectives++, deadline);
      return engine.execute(call, operation);
    }
    call.start(operation.signature(), collectives - 1, deadline);
    pairs.start(operation);
    pairs.finish();
    return Algorithm.PAIRWISE;
  }

  /** Sends and receives progress while a collective waits. */
  @Override
  protected Algorithm executeGroup(List<Operation> operations, Deadline deadline) {
    operations.forEach(pairs::start);
    waiting.setProgress(pairs::progress);
    Algorithm last = Algorithm.PAIRWISE;
    Operation pair = null;
    try {
      for (Operation operation : operations) {
        if (operation.kind().isCollective()) {
          call.start(operation.signature(), collectives++, deadline);
          last = engine.execute(call, operation);
        } else {
          pair = operation;
        }
      }
    } finally {
      waiting.setProgress(null);
    }
    if (pair != null) {
      // Not the signature of a collective: others may still wait in the last one.
      call.start(pair.signature(), collectives - 1, deadline);
      pairs.finish();
    }
    return last;
  }

  @Override
  protected long lastWaitNanos() {
    return waiting.takeWaitedNanos();
  }

  @Override
  protected void announce(CollectiveException cause) {
    LOG.info("{}failed: {}", logPrefix(), cause.getMessage());
    synchronized (announcing) {
      if (!closed) {
        localPeers.mine().fail(cause);
        remotes.sendFailure(cause);
      }
    }
  }

  @Override
  public void close() {
    boolean first =
        adopt(
            new CollectiveException(
                CollectiveException.Kind.CLOSED,
                List.of(rank()),
                "rank " + rank() + " closed communicator " + id()));
    synchronized (announcing) {
      if (closed) {
        return;
      }
      closed = true;
      if (first) {
        localPeers.mine().close();
        remotes.sendClosed();
      } else {
        // The thread that broke it may not have told the others yet, and will not after the close.
        failure().ifPresent(localPeers.mine()::failUnlessEnded);
        failure().ifPresent(remotes::sendFailure);
      }
    }
    if (awaitIdle(Deadline.after(timeout()))) {
      release(first);
    } else {
      LOG.warn(
          "{}an operation still runs after {}; its memory stays mapped until it ends",
          logPrefix(),
          timeout());
      whenIdle(this::releaseLate);
    }
  }

  private void release(boolean reusable) {
    try {
      symmetric.close(reusable);
    } finally {
      resources.close();
    }
  }

  private void releaseLate() {
    try {
      release(false);
    } catch (RuntimeException e) {
      LOG.warn("{}was not closed completely after its last operation", logPrefix(), e);
    }
  }

  /**
   * The current operation, for the classes that carry it out. One thread at a time. One instance
   * per communicator, reset for every operation.
   */
  static final class Call {
    private Signature signature;
    private long sequence;
    private int phase;
    private Deadline deadline;

    /**
     * Starts an operation.
     *
     * @param number of the collective on this communicator; for a send or receive, of the last
     *     collective
     */
    void start(Signature ofOperation, long number, Deadline until) {
      signature = ofOperation;
      sequence = number;
      phase = 0;
      deadline = until;
    }

    /** Starts the next phase of an operation that has several. */
    void nextPhase() {
      phase++;
    }

    Signature signature() {
      return signature;
    }

    long sequence() {
      return sequence;
    }

    int phase() {
      return phase;
    }

    Deadline deadline() {
      return deadline;
    }

    /** Such as "all-reduce sum of 8 float32 (collective #3)". */
    @Override
    public String toString() {
      return signature
          + " ("
          + (signature.isCollective() ? "collective #" + sequence : "pair")
          + ")";
    }
  }

  /**
   * The symmetric buffers of a host communicator. Opens an arena for the first one. Thread-safe.
   */
  static final class HostSymmetric {
    private static final Logger LOG = LoggerFactory.getLogger(HostSymmetric.class);

    /** The causes of private buffers that this process has logged. */
    static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

    private final Communicator communicator;
    private final SymmetricOptions options;
    private SymmetricArena arena;
    private boolean closed;

    HostSymmetric(Communicator communicator, SymmetricOptions options) {
      this.communicator = communicator;
      this.options = options;
    }

    /** Allocates private memory instead, with this reason. */
    interface Fallback {
      SymmetricBuffer allocate(String reason);
    }

    SymmetricBuffer allocate(DataType type, long count, Fallback fallback) {
      Optional<String> apart = SymmetricArena.refusal(communicator.topology());
      if (apart.isPresent()) {
        return fallback("ranks on several hosts", apart.get(), fallback);
      }
      Optional<String> large = SharedBuffer.refusal(communicator.nranks(), type, count);
      if (large.isPresent()) {
        return fallback("large", large.get(), fallback);
      }
      try {
        return shared(type, count);
      } catch (NoSymmetricRoomException e) {
        // Every rank learns that a rank has no room, so all fall back.
        return fallback("no room", e.getMessage(), fallback);
      }
    }

    private SymmetricBuffer shared(DataType type, long count) {
      SymmetricArena open;
      synchronized (this) {
        if (closed) {
          throw new IllegalStateException(communicator + " is closed");
        }
        if (arena == null) {
          arena = SymmetricArena.open(communicator, options);
        }
        open = arena;
      }
      return SharedBuffer.allocate(open, type, count);
    }

    private SymmetricBuffer fallback(String cause, String reason, Fallback fallback) {
      if (LOGGED.add(cause)) {
        LOG.warn("{} gets private memory instead of symmetric buffers: {}", communicator, reason);
      }
      return fallback.allocate(reason);
    }

    /**
     * Closes all buffers.
     *
     * @param reusable whether the communicator did not fail
     */
    void close(boolean reusable) {
      SymmetricArena open;
      synchronized (this) {
        closed = true;
        open = arena;
      }
      if (open != null) {
        open.close(reusable);
      }
    }
  }
}
