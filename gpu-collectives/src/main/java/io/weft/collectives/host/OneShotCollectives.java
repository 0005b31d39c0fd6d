package io.weft.collectives.host;

import io.weft.collectives.buffer.ReduceOp;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.AllReduce;
import io.weft.collectives.operation.Broadcast;
import io.weft.collectives.operation.Gather;
import io.weft.collectives.operation.Reduce;
import io.weft.collectives.operation.ReduceScatter;
import io.weft.collectives.operation.Scatter;
import io.weft.memory.Memory;

/**
 * Small operations: every rank deposits what it sends in its slot, waits until all have, and takes
 * what it needs from the slots of the others. See {@link io.weft.collectives.Algorithm#ONE_SHOT}.
 */
final class OneShotCollectives {
  private final Island island;
  private final Reductions reductions;
  private final long[] sources;
  private final long[] target = new long[1];

  OneShotCollectives(Island island, Reductions reductions) {
    this.island = island;
    this.reductions = reductions;
    this.sources = new long[island.size()];
  }

  /** Enters with these bytes in the slot. */
  private void deposit(Call call, long address, long bytes) {
    island.prepareEntry(call, SymmetricTable.NONE, SymmetricTable.NONE);
    if (bytes > 0) {
      Memory.copy(address, payload(island.me(), bytes), bytes);
    }
    island.enter(call);
  }

  /** Where a rank's deposit of so many bytes lies. */
  private long payload(int index, long deposited) {
    return island.block(index).payload(island.stamp(), deposited);
  }

  void barrier(Call call) {
    deposit(call, 0, 0);
  }

  void allReduce(Call call, AllReduce operation) {
    long bytes = operation.send().bytes();
    deposit(call, operation.send().address(), bytes);
    reduce(operation.receive(), operation.op(), bytes, 0);
  }

  void reduce(Call call, Reduce operation) {
    long bytes = operation.send().bytes();
    deposit(call, operation.send().address(), bytes);
    if (operation.root() == island.me()) {
      reduce(operation.receive(), operation.op(), bytes, 0);
    }
  }

  void reduceScatter(Call call, ReduceScatter operation) {
    long bytes = operation.send().bytes();
    deposit(call, operation.send().address(), bytes);
    reduce(operation.receive(), operation.op(), bytes, island.me() * operation.receive().bytes());
  }

  private void reduce(TypedBuffer receive, ReduceOp op, long deposited, long offset) {
    for (int peer = 0; peer < sources.length; peer++) {
      sources[peer] = payload(peer, deposited) + offset;
    }
    target[0] = receive.address();
    reductions
        .of(receive.type(), op)
        .run(
            sources,
            sources.length,
            target,
            1,
            receive.count(),
            Reductions.divisor(op, sources.length));
  }

  void broadcast(Call call, Broadcast operation) {
    boolean isRoot = operation.root() == island.me();
    TypedBuffer receive = operation.receive();
    deposit(call, operation.send().address(), isRoot ? receive.bytes() : 0);
    if (!isRoot || !operation.send().sameAs(receive)) {
      Memory.copy(payload(operation.root(), receive.bytes()), receive.address(), receive.bytes());
    }
  }

  /** Also of a gather, at its root. */
  void allGather(Call call, TypedBuffer send, TypedBuffer receive) {
    deposit(call, send.address(), send.bytes());
    take(receive, send.bytes(), send.bytes(), 0);
  }

  void gather(Call call, Gather operation) {
    deposit(call, operation.send().address(), operation.send().bytes());
    if (operation.root() == island.me()) {
      long bytes = operation.send().bytes();
      take(operation.receive(), bytes, bytes, 0);
    }
  }

  void scatter(Call call, Scatter operation) {
    boolean isRoot = operation.root() == island.me();
    TypedBuffer receive = operation.receive();
    deposit(call, operation.send().address(), isRoot ? operation.send().bytes() : 0);
    long part = island.me() * receive.bytes();
    long deposited = receive.bytes() * island.size();
    long from = payload(operation.root(), deposited) + part;
    Memory.copy(from, receive.address(), receive.bytes());
  }

  void allToAll(Call call, TypedBuffer send, TypedBuffer receive) {
    deposit(call, send.address(), send.bytes());
    long part = send.bytes() / island.size();
    take(receive, send.bytes(), part, island.me() * part);
  }

  /** From every slot one part, into the receive buffer in the order of the ranks. */
  private void take(TypedBuffer receive, long deposited, long partBytes, long offset) {
    for (int peer = 0; peer < island.size(); peer++) {
      long from = payload(peer, deposited) + offset;
      Memory.copy(from, receive.address() + peer * partBytes, partBytes);
    }
  }
}
