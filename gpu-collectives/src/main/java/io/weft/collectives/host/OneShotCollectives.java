package io.weft.collectives.host;

import io.weft.collectives.AllReduce;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Gather;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.memory.Memory;

/**
 * Small operations. Every rank deposits the data that it sends in its slot, waits until all ranks
 * have done so, and reads from the slots of the others. See {@link
 * io.weft.collectives.Algorithm#ONE_SHOT}.
 */
final class OneShotCollectives {
  private final HostRanks host;
  private final Reductions reductions;
  private final long[] sources;
  private final long[] target = new long[1];

  OneShotCollectives(HostRanks host, Reductions reductions) {
    this.host = host;
    this.reductions = reductions;
    this.sources = new long[host.size()];
  }

  /** Enters with these bytes in the slot. */
  private void deposit(Call call, long address, long bytes) {
    host.prepareEntry(call, SymmetricTable.NONE, SymmetricTable.NONE);
    if (bytes > 0) {
      Memory.copy(address, payload(host.me(), bytes), bytes);
    }
    host.enter(call);
  }

  /** The address of a rank's deposit of this size. */
  private long payload(int index, long deposited) {
    return host.block(index).payload(host.stamp(), deposited);
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
    if (operation.root() == host.me()) {
      reduce(operation.receive(), operation.op(), bytes, 0);
    }
  }

  void reduceScatter(Call call, ReduceScatter operation) {
    long bytes = operation.send().bytes();
    deposit(call, operation.send().address(), bytes);
    reduce(operation.receive(), operation.op(), bytes, host.me() * operation.receive().bytes());
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
    boolean isRoot = operation.root() == host.me();
    TypedBuffer receive = operation.receive();
    deposit(call, operation.send().address(), isRoot ? receive.bytes() : 0);
    if (!isRoot || !operation.send().sameAs(receive)) {
      Memory.copy(payload(operation.root(), receive.bytes()), receive.address(), receive.bytes());
    }
  }

  /** Also used by a gather, at its root. */
  void allGather(Call call, TypedBuffer send, TypedBuffer receive) {
    deposit(call, send.address(), send.bytes());
    take(receive, send.bytes(), send.bytes(), 0);
  }

  void gather(Call call, Gather operation) {
    deposit(call, operation.send().address(), operation.send().bytes());
    if (operation.root() == host.me()) {
      long bytes = operation.send().bytes();
      take(operation.receive(), bytes, bytes, 0);
    }
  }

  void scatter(Call call, Scatter operation) {
    boolean isRoot = operation.root() == host.me();
    TypedBuffer receive = operation.receive();
    deposit(call, operation.send().address(), isRoot ? operation.send().bytes() : 0);
    long part = host.me() * receive.bytes();
    long deposited = receive.bytes() * host.size();
    long from = payload(operation.root(), deposited) + part;
    Memory.copy(from, receive.address(), receive.bytes());
  }

  void allToAll(Call call, TypedBuffer send, TypedBuffer receive) {
    deposit(call, send.address(), send.bytes());
    long part = send.bytes() / host.size();
    take(receive, send.bytes(), part, host.me() * part);
  }

  /** Copies one part of every slot into the receive buffer, in rank order. */
  private void take(TypedBuffer receive, long deposited, long partBytes, long offset) {
    for (int peer = 0; peer < host.size(); peer++) {
      long from = payload(peer, deposited) + offset;
      Memory.copy(from, receive.address() + peer * partBytes, partBytes);
    }
  }
}
