package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllReduce;
import io.weft.collectives.Broadcast;
import io.weft.collectives.DataType;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.Conversion;
import io.weft.collectives.arithmetic.Reduction;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.memory.Memory;
import java.util.List;

/**
 * The reductions of {@link HierarchicalEngine}: each host reduces to its leader, the leaders reduce
 * among themselves, and distribute the result. They work piece by piece, so that temporary memory
 * stays small.
 *
 * <p>The 16-bit floats are widened first and rounded once at the end; averages are sums that are
 * divided at the end. One thread at a time.
 */
final class HierarchicalReductions {
  /** Bytes of partial results in one piece, which passes all phases before the next. */
  static final long PIECE_BYTES = 4 << 20;

  private final HierarchicalEngine engine;
  private final Reductions reductions = new Reductions();
  private final Scratch widened = new Scratch();
  private final Scratch result = new Scratch();
  private final Scratch arriving = new Scratch();
  private final Scratch narrowed = new Scratch();

  HierarchicalReductions(HierarchicalEngine engine) {
    this.engine = engine;
  }

  private static ReduceOp partial(ReduceOp op) {
    return op == ReduceOp.AVERAGE ? ReduceOp.SUM : op;
  }

  private static boolean isWide(DataType type) {
    return type.accumulator() != type;
  }

  /** The elements in the type of partial results: the elements themselves, or a widened copy. */
  private TypedBuffer wide(TypedBuffer own) {
    if (!isWide(own.type())) {
      return own;
    }
    TypedBuffer copy = widened.buffer(own.type().accumulator(), own.count());
    Conversion.widen(own.type(), own.address(), copy.address(), own.count());
    return copy;
  }

  /**
   * The buffer for the computation: the target itself, or, if its type is narrower, a temporary
   * one.
   */
  private TypedBuffer workspace(TypedBuffer target) {
    return isWide(target.type())
        ? result.buffer(target.type().accumulator(), target.count())
        : target;
  }

  /** Divides and rounds a complete result. */
  private void finish(TypedBuffer complete, TypedBuffer target, ReduceOp op) {
    int divisor = Reductions.divisor(op, engine.nranks());
    long count = target.count();
    if (isWide(target.type())) {
      Conversion.narrow(target.type(), complete.address(), target.address(), count, divisor);
    } else if (divisor != 1) {
      Reduction reduction = reductions.of(target.type(), partial(op));
      long[] from = {complete.address()};
      long[] to = {target.address()};
      reduction.run(from, 1, to, 1, count, divisor);
    } else if (complete.address() != target.address()) {
      Memory.copy(complete.address(), target.address(), target.bytes());
    }
  }

  private static long piece(DataType type, int parts) {
    return Math.max(1, PIECE_BYTES / type.accumulator().bytes() / parts);
  }

  void allReduce(Call call, AllReduce operation) {
    TypedBuffer receive = operation.receive();
    ReduceOp op = partial(operation.op());
    long piece = piece(receive.type(), 1);
    boolean leads = engine.isLeader(-1);
    for (long first = 0; first == 0 || first < receive.count(); first += piece) {
      long count = Math.min(piece, receive.count() - first);
      TypedBuffer own = wide(operation.send().slice(first, count));
      TypedBuffer target = receive.slice(first, count);
      TypedBuffer work = leads ? workspace(target) : TypedBuffer.empty(own.type());
      engine.local(call, new Reduce(own, work, op, 0));
      call.nextPhase();
      if (leads) {
        Algorithm unused = engine.leaders(-1).execute(call, new AllReduce(work, work, op));
        finish(work, target, operation.op());
      }
      call.nextPhase();
      engine.local(call, new Broadcast(target, target, 0));
      call.nextPhase();
    }
  }

  void reduce(Call call, Reduce operation) {
    int root = operation.root();
    TypedBuffer send = operation.send();
    ReduceOp op = partial(operation.op());
    long piece = piece(send.type(), 1);
    boolean isRoot = engine.rank() == root;
    boolean leads = engine.isLeader(root);
    for (long first = 0; first == 0 || first < send.count(); first += piece) {
      long count = Math.min(piece, send.count() - first);
      TypedBuffer own = wide(send.slice(first, count));
      TypedBuffer target = isRoot ? operation.receive().slice(first, count) : own;
      TypedBuffer work = TypedBuffer.empty(own.type());
      if (isRoot) {
        work = workspace(target);
      } else if (leads) {
        work = result.buffer(own.type(), count);
      }
      engine.local(call, new Reduce(own, work, op, engine.leader(root)));
      call.nextPhase();
      if (leads) {
        int host = engine.topology().hostOf(root);
        Algorithm unused = engine.leaders(root).execute(call, new Reduce(work, work, op, host));
      }
      call.nextPhase();
      if (isRoot) {
        finish(work, target, operation.op());
      }
    }
  }

  /**
   * The leaders reduce the input of their hosts for all ranks. Each sends the others the sums for
   * their ranks, and distributes the complete results on its host.
   */
  void reduceScatter(Call call, ReduceScatter operation) {
    TypedBuffer receive = operation.receive();
    ReduceOp op = partial(operation.op());
    long piece = piece(receive.type(), engine.nranks());
    boolean leads = engine.isLeader(-1);
    for (long first = 0; first == 0 || first < receive.count(); first += piece) {
      long count = Math.min(piece, receive.count() - first);
      TypedBuffer sums = reducePieces(call, operation, op, first, count);
      TypedBuffer complete = TypedBuffer.empty(receive.type());
      if (leads) {
        complete = combine(call, sums, operation.op(), count, receive.type());
      }
      call.nextPhase();
      engine.local(call, new Scatter(complete, receive.slice(first, count), 0));
      call.nextPhase();
    }
  }

  /** The sums of this host, at its leader: the same number of elements of every rank's part. */
  private TypedBuffer reducePieces(
      Call call, ReduceScatter operation, ReduceOp op, long first, long count) {
    TypedBuffer send = operation.send();
    DataType type = send.type().accumulator();
    boolean leads = engine.isLeader(-1);
    TypedBuffer sums =
        leads ? result.buffer(type, count * engine.nranks()) : TypedBuffer.empty(type);
    if (count == operation.receive().count()) {
      engine.local(call, new Reduce(wide(send), sums, op, 0));
      call.nextPhase();
      return sums;
    }
    for (int each = 0; each < engine.nranks(); each++) {
      TypedBuffer own = wide(send.slice(each * operation.receive().count() + first, count));
      TypedBuffer sum = leads ? sums.slice(each * count, count) : sums;
      engine.local(call, new Reduce(own, sum, op, 0));
      call.nextPhase();
    }
    return sums;
  }

  /**
   * Exchanges sums between leaders; returns the results of this host's ranks one after the other.
   */
  private TypedBuffer combine(Call call, TypedBuffer sums, ReduceOp op, long count, DataType type) {
    RankGroup members = engine.leaderMembers(-1);
    List<Integer> mine = engine.mine();
    long bytes = count * sums.type().bytes();
    long memory = arriving.address(bytes * mine.size() * members.size());
    for (int distance = 1; distance < members.size(); distance++) {
      int peer = members.at(distance);
      for (int each : engine.topology().hosts().get(peer)) {
        members.send(call, each, peer, sums.address() + each * bytes, bytes);
      }
      for (int i = 0; i < mine.size(); i++) {
        long to = memory + ((long) peer * mine.size() + i) * bytes;
        members.receive(call, mine.get(i), peer, to, bytes);
      }
    }
    members.finish();
    TypedBuffer complete = narrowed.buffer(type, count * mine.size());
    Reduction reduction = reductions.of(sums.type(), partial(op));
    long[] sources = new long[members.size()];
    long[] target = new long[1];
    for (int i = 0; i < mine.size(); i++) {
      TypedBuffer own = sums.slice(mine.get(i) * count, count);
      for (int peer = 0; peer < sources.length; peer++) {
        sources[peer] = memory + ((long) peer * mine.size() + i) * bytes;
      }
      sources[members.me()] = own.address();
      target[0] = own.address();
      reduction.run(sources, sources.length, target, 1, count, 1);
      finish(own, complete.slice(i * count, count), op);
    }
    return complete;
  }
}
