package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Barrier;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.Topology;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.memory.Memory;
import java.util.ArrayList;
import java.util.List;

/**
 * Collectives among ranks of which several share a host. See {@link Algorithm#HIERARCHICAL}: one
 * rank of every host, its leader, represents it, so data that all ranks of a host share crosses the
 * network once. Operations without shared data (all-to-all, gather, scatter) run pairwise, through
 * memory or the network.
 *
 * <p>Every part of an operation is a phase of the call, which all ranks enter.
 */
final class HierarchicalEngine implements CollectiveEngine {
  private final int rank;
  private final int nranks;
  private final Topology topology;
  private final CollectiveEngine local;
  private final PointToPoint pairs;
  private final PairwiseCollectives pairwise;
  private final RaggedCollectives ragged;
  private final NetworkEngine[] leaders;
  private final HierarchicalReductions reductions;
  private final List<Integer> mine;

  /**
   * Creates the engine of one rank.
   *
   * @param local carries out collectives among the ranks of this host, numbered in their order
   */
  HierarchicalEngine(
      int rank, int nranks, Topology topology, CollectiveEngine local, PointToPoint pairs) {
    this.rank = rank;
    this.nranks = nranks;
    this.topology = topology;
    this.local = local;
    this.pairs = pairs;
    this.mine = topology.hosts().get(topology.hostOf(rank));
    List<Integer> all = new ArrayList<>();
    for (int each = 0; each < nranks; each++) {
      all.add(each);
    }
    RankGroup everyone = new RankGroup(rank, all, pairs);
    this.pairwise = new PairwiseCollectives(everyone);
    this.ragged = new RaggedCollectives(everyone);
    this.leaders = new NetworkEngine[nranks];
    this.reductions = new HierarchicalReductions(this);
  }

  int rank() {
    return rank;
  }

  int nranks() {
    return nranks;
  }

  Topology topology() {
    return topology;
  }

  /** The ranks of this host. */
  List<Integer> mine() {
    return mine;
  }

  /** Carries out one phase among the ranks of this host. */
  void local(Call call, Operation operation) {
    Algorithm unused = local.execute(call, operation);
  }

  /** The index on this host of its leader, when this rank is the root. */
  int leader(int root) {
    return Math.max(0, mine.indexOf(root));
  }

  boolean isLeader(int root) {
    return mine.get(leader(root)) == rank;
  }

  /** The engine of the leaders, which include the root if there is one; created on first use. */
  NetworkEngine leaders(int root) {
    int key = Math.max(0, root);
    if (leaders[key] == null) {
      leaders[key] = new NetworkEngine(leaderMembers(root));
    }
    return leaders[key];
  }

  /** The leaders as members, numbered like the hosts. */
  RankGroup leaderMembers(int root) {
    List<Integer> ranks = new ArrayList<>();
    for (List<Integer> host : topology.hosts()) {
      ranks.add(host.contains(root) ? root : host.get(0));
    }
    return new RankGroup(rank, ranks, pairs);
  }

  @Override
  public Algorithm execute(Call call, Operation operation) {
    switch (operation.kind()) {
      case BARRIER -> barrier(call);
      case ALL_REDUCE -> reductions.allReduce(call, (AllReduce) operation);
      case REDUCE -> reductions.reduce(call, (Reduce) operation);
      case REDUCE_SCATTER -> reductions.reduceScatter(call, (ReduceScatter) operation);
      case BROADCAST -> broadcast(call, (Broadcast) operation);
      case ALL_GATHER -> allGather(call, (AllGather) operation);
      default -> {
        return pairwise(call, operation);
      }
    }
    return Algorithm.HIERARCHICAL;
  }

  private Algorithm pairwise(Call call, Operation operation) {
    switch (operation.kind()) {
      case ALL_TO_ALL -> pairwise.allToAll(call, (AllToAll) operation);
      case GATHER -> pairwise.gather(call, (Gather) operation);
      case SCATTER -> pairwise.scatter(call, (Scatter) operation);
      case RAGGED_ALL_TO_ALL -> ragged.byMessages(call, (RaggedAllToAll) operation);
      default -> throw new IllegalArgumentException(operation.kind() + " is not a collective");
    }
    return Algorithm.PAIRWISE;
  }

  private void barrier(Call call) {
    Barrier barrier = new Barrier();
    local(call, barrier);
    call.nextPhase();
    if (isLeader(-1)) {
      Algorithm unused = leaders(-1).execute(call, barrier);
    }
    call.nextPhase();
    local(call, barrier);
  }

  /**
   * Works in pieces, so that one crosses the network while the one before is copied from memory.
   */
  private void broadcast(Call call, Broadcast operation) {
    int root = operation.root();
    TypedBuffer receive = operation.receive();
    if (rank == root && !operation.send().sameAs(receive)) {
      Memory.copy(operation.send().address(), receive.address(), receive.bytes());
    }
    long piece = HierarchicalReductions.PIECE_BYTES / receive.type().bytes();
    for (long first = 0; first == 0 || first < receive.count(); first += piece) {
      TypedBuffer part = receive.slice(first, Math.min(piece, receive.count() - first));
      if (isLeader(root)) {
        Broadcast between = new Broadcast(part, part, topology.hostOf(root));
        Algorithm unused = leaders(root).execute(call, between);
      }
      call.nextPhase();
      local(call, new Broadcast(part, part, leader(root)));
      call.nextPhase();
    }
  }

  /** The leaders collect the parts of their hosts, exchange them, and distribute the whole. */
  private void allGather(Call call, AllGather operation) {
    TypedBuffer receive = operation.receive();
    long count = operation.send().count();
    collectParts(call, operation);
    call.nextPhase();
    if (isLeader(-1)) {
      if (isInOrder()) {
        TypedBuffer parts = receive.slice(rank * count, mine.size() * count);
        Algorithm unused = leaders(-1).execute(call, new AllGather(parts, receive));
      } else {
        exchangeParts(call, receive, operation.send().bytes());
      }
    }
    call.nextPhase();
    local(call, new Broadcast(receive, receive, 0));
  }

  private void collectParts(Call call, AllGather operation) {
    TypedBuffer send = operation.send();
    long bytes = send.bytes();
    if (isLeader(-1)) {
      long receive = operation.receive().address();
      for (int each : mine) {
        if (each != rank) {
          pairs.receive(call, 0, each, receive + each * bytes, bytes);
        }
      }
      if (send.address() != receive + rank * bytes) {
        Memory.copy(send.address(), receive + rank * bytes, bytes);
      }
    } else {
      pairs.send(call, 0, mine.get(0), send.address(), bytes);
    }
    pairs.finish();
  }

  /**
   * Whether all hosts have the same number of ranks in consecutive order; the same on all ranks.
   */
  private boolean isInOrder() {
    int next = 0;
    for (List<Integer> host : topology.hosts()) {
      for (int each : host) {
        if (each != next) {
          return false;
        }
        next++;
      }
    }
    return topology.hosts().stream().allMatch(host -> host.size() == mine.size());
  }

  /** Every leader sends the parts of its host to every other leader. */
  private void exchangeParts(Call call, TypedBuffer receive, long bytes) {
    RankGroup members = leaderMembers(-1);
    for (int distance = 1; distance < members.size(); distance++) {
      int peer = members.at(distance);
      for (int each : mine) {
        members.send(call, each, peer, receive.address() + each * bytes, bytes);
      }
      for (int each : topology.hosts().get(peer)) {
        members.receive(call, each, peer, receive.address() + each * bytes, bytes);
      }
    }
    members.finish();
  }
}
