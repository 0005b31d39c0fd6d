package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.Reduction;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.PointToPoint.RankGroup;

/**
 * Collectives among ranks that are connected only by messages. Small operations take few steps,
 * large ones move few bytes; the thresholds are defined here. Ranks compare their operations
 * message by message.
 */
final class NetworkEngine implements CollectiveEngine {
  /**
   * The limit up to which an all-reduce uses doubling (few steps) instead of the ring (few bytes).
   * Over the loopback of two cores both took the same at 64 KiB for 2 ranks and between 128 and 256
   * KiB for 3 and 4. Latencies between machines are longer, which favours doubling.
   */
  static final int DOUBLING_BYTES = 128 << 10;

  /**
   * The limit, in all parts together, up to which operations use trees or send each part directly.
   * Trees and chains took the same between 32 and 64 KiB, measured as above.
   */
  static final int SMALL_BYTES = 64 << 10;

  private final RankGroup members;
  private final TreeCollectives tree;
  private final RingCollectives ring;
  private final PairwiseCollectives pairwise;
  private final Reductions reductions = new Reductions();
  private final Scratch widened = new Scratch();
  private final Scratch parts = new Scratch();

  NetworkEngine(RankGroup members) {
    this.members = members;
    this.tree = new TreeCollectives(members);
    this.ring = new RingCollectives(members);
    this.pairwise = new PairwiseCollectives(members);
  }

  @Override
  public Algorithm execute(Call call, Operation operation) {
    return switch (operation.kind()) {
      case BARRIER -> {
        tree.barrier(call);
        yield Algorithm.DISSEMINATION;
      }
      case ALL_REDUCE -> allReduce(call, (AllReduce) operation);
      case REDUCE -> reduce(call, (Reduce) operation);
      case REDUCE_SCATTER -> reduceScatter(call, (ReduceScatter) operation);
      case BROADCAST -> broadcast(call, (Broadcast) operation);
      case ALL_GATHER -> allGather(call, (AllGather) operation);
      case ALL_TO_ALL -> {
        pairwise.allToAll(call, (AllToAll) operation);
        yield Algorithm.PAIRWISE;
      }
      case GATHER -> gather(call, (Gather) operation);
      case SCATTER -> scatter(call, (Scatter) operation);
      case RAGGED_ALL_TO_ALL -> {
        pairwise.raggedAllToAll(call, (RaggedAllToAll) operation);
        yield Algorithm.PAIRWISE;
      }
      case SEND, RECEIVE ->
          throw new IllegalArgumentException(operation.kind() + " is not a collective");
    };
  }

  private PartialResults partials(TypedBuffer like, ReduceOp op) {
    return new PartialResults(like.type(), op, members.size(), reductions, widened);
  }

  private Algorithm allReduce(Call call, AllReduce operation) {
    PartialResults partials = partials(operation.send(), operation.op());
    if (operation.send().count() * partials.type().bytes() <= DOUBLING_BYTES) {
      tree.allReduce(call, operation, partials);
      return Algorithm.RECURSIVE_DOUBLING;
    }
    ring.allReduce(call, operation, partials);
    return Algorithm.RING;
  }

  private Algorithm reduce(Call call, Reduce operation) {
    PartialResults partials = partials(operation.send(), operation.op());
    if (operation.send().count() * partials.type().bytes() <= SMALL_BYTES) {
      tree.reduce(call, operation, partials);
      return Algorithm.BINOMIAL_TREE;
    }
    ring.reduce(call, operation, partials);
    return Algorithm.RING;
  }

  private Algorithm reduceScatter(Call call, ReduceScatter operation) {
    if (operation.send().bytes() <= SMALL_BYTES) {
      reduceScatterPairwise(call, operation);
      return Algorithm.PAIRWISE;
    }
    ring.reduceScatter(call, operation, partials(operation.send(), operation.op()));
    return Algorithm.RING;
  }

  /** Every rank sends every other its part. The receiver combines the parts in rank order. */
  private void reduceScatterPairwise(Call call, ReduceScatter operation) {
    TypedBuffer receive = operation.receive();
    long bytes = receive.bytes();
    long memory = parts.address(bytes * members.size());
    long[] sources = new long[members.size()];
    for (int distance = 1; distance < members.size(); distance++) {
      int peer = members.at(distance);
      sources[peer] = memory + peer * bytes;
      members.send(call, 0, peer, operation.send().address() + peer * bytes, bytes);
      members.receive(call, 0, peer, sources[peer], bytes);
    }
    sources[members.me()] = operation.send().address() + members.me() * bytes;
    members.finish();
    Reduction reduction = reductions.of(receive.type(), operation.op());
    int divisor = Reductions.divisor(operation.op(), members.size());
    long[] target = {receive.address()};
    reduction.run(sources, sources.length, target, 1, receive.count(), divisor);
  }

  private Algorithm broadcast(Call call, Broadcast operation) {
    if (operation.receive().bytes() <= SMALL_BYTES) {
      tree.broadcast(call, operation);
      return Algorithm.BINOMIAL_TREE;
    }
    ring.broadcast(call, operation);
    return Algorithm.RING;
  }

  private Algorithm allGather(Call call, AllGather operation) {
    if (operation.receive().bytes() <= SMALL_BYTES) {
      tree.allGather(call, operation);
      return Algorithm.DISSEMINATION;
    }
    ring.allGather(call, operation);
    return Algorithm.RING;
  }

  /**
   * A tree takes fewer messages; above the limit its detours cost more, so all parts are sent
   * directly.
   */
  private Algorithm gather(Call call, Gather operation) {
    if (operation.send().bytes() * members.size() <= SMALL_BYTES) {
      tree.gather(call, operation);
      return Algorithm.BINOMIAL_TREE;
    }
    pairwise.gather(call, operation);
    return Algorithm.PAIRWISE;
  }

  private Algorithm scatter(Call call, Scatter operation) {
    if (operation.receive().bytes() * members.size() <= SMALL_BYTES) {
      tree.scatter(call, operation);
      return Algorithm.BINOMIAL_TREE;
    }
    pairwise.scatter(call, operation);
    return Algorithm.PAIRWISE;
  }
}
