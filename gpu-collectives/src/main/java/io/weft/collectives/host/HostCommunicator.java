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
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One rank of the host implementation. */
final class HostCommunicator extends OrderedCommunicator implements InPlaceRegions {
  private static final Logger LOG = LoggerFactory.getLogger(HostCommunicator.class);

  private final Topology topology;
  private final Neighbours neighbours;
  private final HostResources resources;
  private final Call call = new Call();
  private final Waiting waiting;
  private final CollectiveEngine engine;
  private final PairMessages pairs;
  private final HostRegions regions;
  private long collectives;
  private boolean closed;

  HostCommunicator(
      Bootstrap bootstrap,
      CommunicatorOptions common,
      HostOptions options,
      Topology topology,
      Neighbours neighbours,
      HostResources resources) {
    super(Bootstrapped.of(bootstrap), common);
    this.topology = topology;
    this.neighbours = neighbours;
    this.resources = resources;
    HostWatch watch =
        new HostWatch(
            rank(), call, this::failure, neighbours, rank -> neighbours.status(rank, call), 0);
    this.waiting = new Waiting(watch, neighbours.size());
    Island island = neighbours.island(waiting);
    this.regions = new HostRegions(new SymmetricTable(island.me()), neighbours.ranks());
    this.engine =
        nranks() == 1
            ? new TrivialEngine()
            : new SharedMemoryEngine(
                island,
                regions.table(),
                pointToPoint(island, Traffic.COLLECTIVES, options.sizes()),
                options.sizes());
    this.pairs =
        new PairMessages(rank(), nranks(), pointToPoint(island, Traffic.PAIRS, options.sizes()));
  }

  private PointToPoint pointToPoint(Island island, Traffic traffic, BufferSizes sizes) {
    return new PointToPoint(
        rank(),
        nranks(),
        peer ->
            new RingLink(
                island.block(island.me()),
                island.block(peer),
                island.me(),
                peer,
                traffic,
                sizes.ringBytes()),
        waiting);
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
    synchronized (resources) {
      return closed ? failure() : neighbours.has(peer) ? neighbours.end(peer) : Optional.empty();
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
    synchronized (resources) {
      if (!closed) {
        neighbours.mine().fail(cause);
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
    synchronized (resources) {
      if (closed) {
        return;
      }
      closed = true;
      if (first) {
        neighbours.mine().close();
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
