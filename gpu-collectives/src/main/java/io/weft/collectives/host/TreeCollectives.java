package io.weft.collectives.host;

import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Gather;
import io.weft.collectives.Reduce;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.memory.Memory;

/**
 * Small operations, in a number of steps that is the logarithm of the number of ranks. Messages are
 * sent whole. Roots are numbers of members.
 *
 * <p>One thread at a time.
 */
final class TreeCollectives {
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
   * The dissemination barrier: in step k member r signals r + 2^k and waits for r - 2^k. After the
   * last step every member knows that all have arrived (Hensgen, Finkel, Manber, "Two algorithms
   * for barrier synchronization", 1988).
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
   * and combine it. Members beyond a power of two first fold into a neighbour, which sends them the
   * result (Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
   * MPICH", 2005). Both members of a pair combine in the order of their numbers, so all get the
   * same bits.
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
   * A binomial tree: in each step every member that has the data sends it on, to the farthest child
   * first (Thakur et al. 2005, section 3).
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
   * Copies with rotation: byte 0 goes to the offset, and bytes beyond the end go to the beginning.
   */
  private static void rotate(long from, long to, long offset, long bytes) {
    Memory.copy(from, to + offset, bytes - offset);
    Memory.copy(from + bytes - offset, to, offset);
  }

  /** The binomial tree from the root to the leaves: every member gets the parts of its subtree. */
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
