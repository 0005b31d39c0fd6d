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
import io.weft.memory.Memory;

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
  private final RaggedCollectives ragged;
  private final Reductions reductions = new Reductions();
  private final Scratch widened = new Scratch();
  private final Scratch parts = new Scratch();

  NetworkEngine(RankGroup members) {
    this.members = members;
    this.tree = new TreeCollectives(members);
    this.ring = new RingCollectives(members);
    this.pairwise = new PairwiseCollectives(members);
    this.ragged = new RaggedCollectives(members);
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
        ragged.byMessages(call, (RaggedAllToAll) operation);
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

  /**
   * Small operations, in a number of steps that is the logarithm of the number of ranks. Messages
   * are sent whole. Roots are numbers of members.
   *
   * <p>One thread at a time.
   */
  static final class TreeCollectives {
    private final RankGroup members;
    private final int me;
    private final int size;
    private final Scratch accumulator = new Scratch();
    private final Scratch arriving = new Scratch();

    TreeCollectives(RankGroup members) {
      this.members = members;
      this.me = members.me();
      this.size = members.size();
    }

    /**
     * The dissemination barrier: in step k member r signals r + 2^k and waits for r - 2^k. After
     * the last step every member knows that all have arrived (Hensgen, Finkel, Manber, "Two
     * algorithms for barrier synchronization", 1988).
     */
    void barrier(Call call) {
      for (int distance = 1; distance < size; distance *= 2) {
        members.send(call, distance, members.at(distance), 0, 0);
        members.receive(call, distance, members.at(-distance), 0, 0);
        members.finish();
      }
    }

    /**
     * Recursive doubling: in each step members whose numbers differ in one bit exchange their data
     * and combine it. Members beyond a power of two first fold into a neighbour, which sends them
     * the result (Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations
     * in MPICH", 2005). Both members of a pair combine in the order of their numbers, so all get
     * the same bits.
     */
    void allReduce(Call call, AllReduce operation, PartialResults partials) {
      TypedBuffer receive = operation.receive();
      long count = receive.count();
      long bytes = count * partials.type().bytes();
      int powerOfTwo = Integer.highestOneBit(size);
      int beyond = size - powerOfTwo;
      boolean folds = me < 2 * beyond;
      if (folds && me % 2 == 0) {
        members.send(call, 0, me + 1, operation.send().address(), receive.bytes());
        members.finish();
        members.receive(call, 1, me + 1, receive.address(), receive.bytes());
        members.finish();
        return;
      }
      long all = accumulator.address(bytes);
      long other = arriving.address(bytes);
      if (folds) {
        members.receive(call, 0, me - 1, other, receive.bytes());
        members.finish();
        partials.two(other, operation.send().address(), all, count);
      } else {
        partials.one(operation.send().address(), all, count);
      }
      int number = folds ? me / 2 : me - beyond;
      for (int bit = 1; bit < powerOfTwo; bit *= 2) {
        int peer = memberOf(number ^ bit, beyond);
        members.send(call, 1 + bit, peer, all, bytes);
        members.receive(call, 1 + bit, peer, other, bytes);
        members.finish();
        partials.join(peer < me ? other : all, peer < me ? all : other, all, count);
      }
      partials.finish(all, receive.address(), count);
      if (folds) {
        members.send(call, 1, me - 1, receive.address(), receive.bytes());
        members.finish();
      }
    }

    private static int memberOf(int number, int beyond) {
      return number < beyond ? 2 * number + 1 : number + beyond;
    }

    /** The place of this member in the tree: the root has place 0. */
    private int inTree(int root) {
      return Math.floorMod(me - root, size);
    }

    private int member(int inTree, int root) {
      return (inTree + root) % size;
    }

    /**
     * A binomial tree: in each step every member that has the data sends it on, to the farthest
     * child first (Thakur et al. 2005, section 3).
     */
    void broadcast(Call call, Broadcast operation) {
      int root = operation.root();
      int place = inTree(root);
      TypedBuffer receive = operation.receive();
      long data = receive.address();
      if (place == 0) {
        data = operation.send().address();
      } else {
        int parent = member(place & place - 1, root);
        members.receive(call, 0, parent, data, receive.bytes());
        members.finish();
      }
      for (int bit = highestChild(place); bit > 0; bit /= 2) {
        if (place + bit < size) {
          members.send(call, 0, member(place + bit, root), data, receive.bytes());
        }
      }
      if (data != receive.address()) {
        Memory.copy(data, receive.address(), receive.bytes());
      }
      members.finish();
    }

    /** The largest power of two whose sum with a place is a child. */
    private int highestChild(int place) {
      return place == 0 ? Integer.highestOneBit(size) : Integer.lowestOneBit(place) / 2;
    }

    /** The binomial tree from the leaves to the root. */
    void reduce(Call call, Reduce operation, PartialResults partials) {
      int root = operation.root();
      int place = inTree(root);
      long count = operation.send().count();
      long bytes = count * partials.type().bytes();
      long all = accumulator.address(bytes);
      long other = arriving.address(bytes);
      partials.one(operation.send().address(), all, count);
      int end = place == 0 ? size : Integer.lowestOneBit(place);
      for (int bit = 1; bit < end && place + bit < size; bit *= 2) {
        members.receive(call, 0, member(place + bit, root), other, bytes);
        members.finish();
        partials.join(all, other, all, count);
      }
      if (place == 0) {
        partials.finish(all, operation.receive().address(), count);
      } else {
        members.send(call, 0, member(place & place - 1, root), all, bytes);
        members.finish();
      }
    }

    /**
     * Every member collects the parts of its subtree and passes them on together: the binomial tree
     * of Thakur et al. 2005.
     */
    void gather(Call call, Gather operation) {
      int root = operation.root();
      int place = inTree(root);
      long part = operation.send().bytes();
      long parts = accumulator.address(part * size);
      Memory.copy(operation.send().address(), parts, part);
      int end = place == 0 ? size : Integer.lowestOneBit(place);
      for (int bit = 1; bit < end && place + bit < size; bit *= 2) {
        long length = part * Math.min(bit, size - place - bit);
        members.receive(call, 0, member(place + bit, root), parts + bit * part, length);
      }
      members.finish();
      if (place == 0) {
        rotate(parts, operation.receive().address(), root * part, part * size);
      } else {
        long length = part * Math.min(end, size - place);
        members.send(call, 0, member(place & place - 1, root), parts, length);
        members.finish();
      }
    }

    /**
     * Copies with rotation: byte 0 goes to the offset, and bytes beyond the end go to the
     * beginning.
     */
    private static void rotate(long from, long to, long offset, long bytes) {
      Memory.copy(from, to + offset, bytes - offset);
      Memory.copy(from + bytes - offset, to, offset);
    }

    /**
     * The binomial tree from the root to the leaves: every member gets the parts of its subtree.
     */
    void scatter(Call call, Scatter operation) {
      int root = operation.root();
      int place = inTree(root);
      long part = operation.receive().bytes();
      long parts = accumulator.address(part * size);
      if (place == 0) {
        rotate(operation.send().address(), parts, (size - root) % size * part, part * size);
      } else {
        long length = part * Math.min(Integer.lowestOneBit(place), size - place);
        members.receive(call, 0, member(place & place - 1, root), parts, length);
        members.finish();
      }
      for (int bit = highestChild(place); bit > 0; bit /= 2) {
        if (place + bit < size) {
          long length = part * Math.min(bit, size - place - bit);
          members.send(call, 0, member(place + bit, root), parts + bit * part, length);
        }
      }
      Memory.copy(parts, operation.receive().address(), part);
      members.finish();
    }

    /**
     * In step k member r sends all its data to r - 2^k and receives as much from r + 2^k. Works for
     * any number of members (Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for
     * all-to-all communications in multiport message-passing systems", 1997).
     */
    void allGather(Call call, AllGather operation) {
      long part = operation.send().bytes();
      long parts = accumulator.address(part * size);
      Memory.copy(operation.send().address(), parts, part);
      for (int have = 1; have < size; have *= 2) {
        long length = part * Math.min(have, size - have);
        members.send(call, have, members.at(-have), parts, length);
        members.receive(call, have, members.at(have), parts + have * part, length);
        members.finish();
      }
      rotate(parts, operation.receive().address(), me * part, part * size);
    }
  }
}
