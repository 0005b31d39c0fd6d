package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Bootstrap;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.InPlaceRegions;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.Topology;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.Operation;
import io.weft.device.Deadline;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One rank of the host implementation. */
final class HostCommunicator extends OrderedCommunicator implements InPlaceRegions {
  private static final Logger LOG = LoggerFactory.getLogger(HostCommunicator.class);

  private static final long MOST_DIAGNOSIS_NANOS = 1_000_000_000;

  private final Topology topology;
  private final Neighbours neighbours;
  private final RemoteRanks remotes;
  private final HostResources resources;
  private final Call call = new Call();
  private final Waiting waiting;
  private final CollectiveEngine engine;
  private final PairMessages pairs;
  private final HostRegions regions;
  private long collectives;

  /** Guards {@link #closed} and what others see of this rank. */
  private final Object announcing = new Object();

  private boolean closed;

  HostCommunicator(
      Bootstrap bootstrap,
      CommunicatorOptions common,
      BufferSizes sizes,
      Topology topology,
      Neighbours neighbours,
      RemoteRanks remotes,
      HostResources resources) {
    super(Bootstrapped.of(bootstrap), common);
    this.topology = topology;
    this.neighbours = neighbours;
    this.remotes = remotes;
    this.resources = resources;
    HostWatch watch =
        new HostWatch(rank(), call, this::failure, neighbours, remotes, diagnosisNanos());
    this.waiting = new Waiting(watch, neighbours.size(), !remotes.isEmpty());
    this.regions = new HostRegions(rank(), neighbours.ranks());
    this.engine = engine(sizes);
    this.pairs = new PairMessages(rank(), nranks(), pointToPoint(Traffic.PAIRS, sizes));
  }

  /** Finding out who is late takes messages, which are to come within the timeout too. */
  private long diagnosisNanos() {
    return remotes.isEmpty() ? 0 : Math.min(MOST_DIAGNOSIS_NANOS, timeout().toNanos() / 10);
  }

  private CollectiveEngine engine(BufferSizes sizes) {
    PointToPoint messages = pointToPoint(Traffic.COLLECTIVES, sizes);
    List<Integer> host = topology.hosts().get(topology.hostOf(rank()));
    CollectiveEngine local = new TrivialEngine();
    if (host.size() > 1) {
      Island island = neighbours.island(waiting);
      Members members = new Members(rank(), host, messages);
      local = new SharedMemoryEngine(island, regions.table(), members, sizes);
    }
    if (topology.isOneHost()) {
      return local;
    }
    if (topology.isAllApart()) {
      List<Integer> all = topology.hosts().stream().map(ranks -> ranks.get(0)).toList();
      return new NetworkEngine(new Members(rank(), all, messages));
    }
    return new HierarchicalEngine(rank(), nranks(), topology, local, messages);
  }

  private PointToPoint pointToPoint(Traffic traffic, BufferSizes sizes) {
    return new PointToPoint(
        rank(),
        nranks(),
        peer ->
            neighbours.has(peer)
                ? neighbours.link(peer, traffic, sizes.ringBytes())
                : remotes.link(peer, traffic),
        waiting);
  }

  /** Begins to listen to the ranks of other hosts. */
  void start() throws IOException {
    remotes.start(this::ownWaiting, this::adoptRemote);
  }

  /** For the thread that answers other hosts, which may still run while this is closed. */
  Optional<WaitStatus> ownWaiting() {
    synchronized (announcing) {
      return closed ? Optional.empty() : neighbours.mine().waiting();
    }
  }

  /** A rank of another host failed, and has told those of this host itself. */
  private void adoptRemote(CollectiveException cause) {
    if (adopt(cause)) {
      synchronized (announcing) {
        if (!closed) {
          neighbours.mine().fail(cause);
        }
      }
    }
  }

  @Override
  public Topology topology() {
    return topology;
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
      return neighbours.has(peer) ? neighbours.end(peer) : remotes.end(peer);
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

  /** Sends and receives go on while a collective waits. */
  @Override
  protected Algorithm executeGroup(List<Operation> operations, Deadline deadline) {
    operations.forEach(pairs::start);
    waiting.setProgress(pairs::progress);
    Algorithm last = Algorithm.PAIRWISE;
    try {
      for (Operation operation : operations) {
        if (operation.kind().isCollective()) {
          call.start(operation.signature(), collectives++, deadline);
          last = engine.execute(call, operation);
        }
      }
    } finally {
      waiting.setProgress(null);
    }
    call.start(operations.get(0).signature(), collectives - 1, deadline);
    pairs.finish();
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
        neighbours.mine().fail(cause);
        remotes.tellFailure(cause);
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
        neighbours.mine().close();
        remotes.tellClosed();
      } else {
        // Whoever broke it may not have come to tell the others, and then tells nobody any more.
        failure().ifPresent(neighbours.mine()::failUnlessEnded);
        failure().ifPresent(remotes::tellFailure);
      }
    }
    if (awaitIdle(Deadline.after(timeout()))) {
      resources.close();
    } else {
      LOG.warn(
          "{}an operation still runs after {}; its memory stays mapped", logPrefix(), timeout());
    }
  }
}
