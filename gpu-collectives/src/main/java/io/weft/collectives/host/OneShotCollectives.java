package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllReduce;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Division;
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
 * have done so, and reads from the slots of the others. See {@link Algorithm#ONE_SHOT}.
 */
final class OneShotCollectives {
  private final HostRanks host;
  private final Reductions reductions;
  private final long[] sources;
  private final long[] target = new long[1];
  private boolean deposited;

  OneShotCollectives(HostRanks host, Reductions reductions) {
    this.host = host;
    this.reductions = reductions;
    this.sources = new long[host.size()];
  }

  /**
   * Tells how the next operation starts.
   *
   * @param done whether all ranks have made its deposits in the current entry
   */
  void useDeposits(boolean done) {
    deposited = done;
  }

  /** Enters with these bytes in the slot, unless they were deposited in the current entry. */
  private void deposit(Call call, long address, long bytes) {
    deposit(call, address, bytes, 0);
  }

  /** As {@link #deposit(Call, long, long)}, without this rank's own part of this many bytes. */
  private void deposit(Call call, long address, long bytes, long ownBytes) {
    if (deposited) {
      deposited = false;
      return;
    }
    host.prepareEntry(call, SymmetricTable.NONE, SymmetricTable.NONE);
    put(address, bytes, ownBytes);
    host.enter(call);
  }

  /**
   * Copies bytes to the slot of the prepared entry.
   *
   * @param ownBytes of this rank's part of them, which is left out
   */
  void put(long address, long bytes, long ownBytes) {
    long to = payload(host.me(), bytes);
    if (ownBytes == 0) {
      LibraryCopy.copy(address, to, bytes);
      return;
    }
    long before = host.me() * ownBytes;
    long after = before + ownBytes;
    LibraryCopy.copy(address, to, before);
    LibraryCopy.copy(address + after, to + after, bytes - after);
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
    reduce(operation.send(), operation.receive(), operation.op(), 0);
  }

  void reduce(Call call, Reduce operation) {
    long bytes = operation.send().bytes();
    deposit(call, operation.send().address(), bytes);
    if (operation.root() == host.me()) {
      reduce(operation.send(), operation.receive(), operation.op(), 0);
    }
  }

  void reduceScatter(Call call, ReduceScatter operation) {
    long bytes = operation.send().bytes();
    long part = operation.receive().bytes();
    deposit(call, operation.send().address(), bytes, part);
    reduce(operation.send(), operation.receive(), operation.op(), host.me() * part);
  }

  private void reduce(TypedBuffer send, TypedBuffer receive, ReduceOp op, long offset) {
    for (int peer = 0; peer < sources.length; peer++) {
      sources[peer] = payload(peer, send.bytes()) + offset;
    }
    sources[host.me()] = send.address() + offset;
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
    take(receive, send.bytes(), send.bytes(), 0, send.address());
  }

  void gather(Call call, Gather operation) {
    deposit(call, operation.send().address(), operation.send().bytes());
    if (operation.root() == host.me()) {
      long bytes = operation.send().bytes();
      take(operation.receive(), bytes, bytes, 0, operation.send().address());
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
    long part = Division.quotient(send.bytes(), host.size());
    deposit(call, send.address(), send.bytes(), part);
    long offset = host.me() * part;
    take(receive, send.bytes(), part, offset, send.address() + offset);
  }

  /**
   * Copies one part of every slot into the receive buffer, in rank order.
   *
   * @param own the address of this rank's part, which need not be in its slot
   */
  private void take(TypedBuffer receive, long deposited, long partBytes, long offset, long own) {
    for (int peer = 0; peer < host.size(); peer++) {
      long from = peer == host.me() ? own : payload(peer, deposited) + offset;
      InPlaceCollectives.copy(from, receive.address() + peer * partBytes, partBytes);
    }
  }
}
