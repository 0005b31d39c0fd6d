package io.weft.collectives.host;

import io.weft.collectives.buffer.ReduceOp;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.AllReduce;
import io.weft.collectives.operation.RaggedAllToAll;
import io.weft.collectives.operation.RaggedLayout;
import io.weft.collectives.operation.Reduce;
import io.weft.collectives.operation.ReduceScatter;
import io.weft.memory.Memory;

/**
 * Large operations on symmetric buffers, which every rank of the host can reach. See {@link
 * io.weft.collectives.Algorithm#IN_PLACE}.
 *
 * <p>Called after the entry, in which all ranks have told where their buffers are. Ends with a
 * sync, because until then others read or write this rank's buffers.
 */
final class InPlaceCollectives {
  private final Island island;
  private final Reductions reductions;
  private final SymmetricTable table;
  private final long[] sources;
  private final long[] targets;

  InPlaceCollectives(Island island, Reductions reductions, SymmetricTable table) {
    this.island = island;
    this.reductions = reductions;
    this.table = table;
    this.sources = new long[island.size()];
    this.targets = new long[island.size()];
  }

  /** Whether every rank's send buffer of this entry is symmetric. */
  boolean reachesSends() {
    for (int peer = 0; peer < island.size(); peer++) {
      if (!reachesSend(peer)) {
        return false;
      }
    }
    return true;
  }

  /** Whether every rank's receive buffer of this entry is symmetric. */
  boolean reachesReceives() {
    for (int peer = 0; peer < island.size(); peer++) {
      if (!reachesReceive(peer)) {
        return false;
      }
    }
    return true;
  }

  boolean reachesSend(int peer) {
    return island.block(peer).sendDescriptor(island.stamp()) != SymmetricTable.NONE;
  }

  boolean reachesReceive(int peer) {
    return island.block(peer).receiveDescriptor(island.stamp()) != SymmetricTable.NONE;
  }

  private long send(int peer) {
    return table.resolve(peer, island.block(peer).sendDescriptor(island.stamp()));
  }

  private long receive(int peer) {
    return table.resolve(peer, island.block(peer).receiveDescriptor(island.stamp()));
  }

  /** Needs the sends and the receives. */
  void allReduce(AllReduce operation) {
    Shares shares = shares(operation.send());
    long share = shares.start(island.me()) * operation.send().type().bytes();
    for (int peer = 0; peer < sources.length; peer++) {
      sources[peer] = send(peer) + share;
      targets[peer] = receive(peer) + share;
    }
    run(operation.send(), operation.op(), targets.length, shares.length(island.me()));
    island.sync();
  }

  private Shares shares(TypedBuffer buffer) {
    return new Shares(buffer.count(), island.size(), buffer.type().bytes());
  }

  private void run(TypedBuffer like, ReduceOp op, int targetCount, long count) {
    reductions
        .of(like.type(), op)
        .run(
            sources,
            sources.length,
            targets,
            targetCount,
            count,
            Reductions.divisor(op, sources.length));
  }

  /** Needs the sends and the root's receive. */
  void reduce(Reduce operation) {
    Shares shares = shares(operation.send());
    long share = shares.start(island.me()) * operation.send().type().bytes();
    for (int peer = 0; peer < sources.length; peer++) {
      sources[peer] = send(peer) + share;
    }
    targets[0] = receive(operation.root()) + share;
    run(operation.send(), operation.op(), 1, shares.length(island.me()));
    island.sync();
  }

  /** Needs the sends. */
  void reduceScatter(ReduceScatter operation) {
    TypedBuffer receive = operation.receive();
    for (int peer = 0; peer < sources.length; peer++) {
      sources[peer] = send(peer) + island.me() * receive.bytes();
    }
    targets[0] = receive.address();
    run(operation.send(), operation.op(), 1, receive.count());
    island.sync();
  }

  /** Needs the sends, and the own one in its place. Everybody starts with another peer. */
  void allGatherByReading(TypedBuffer send, TypedBuffer receive) {
    for (int i = 1; i < island.size(); i++) {
      int peer = (island.me() + i) % island.size();
      copy(send(peer), receive.address() + peer * send.bytes(), send.bytes());
    }
    island.sync();
  }

  /** Needs the receives. */
  void allGatherByWriting(TypedBuffer send) {
    for (int i = 0; i < island.size(); i++) {
      int peer = (island.me() + i) % island.size();
      copy(send.address(), receive(peer) + island.me() * send.bytes(), send.bytes());
    }
    island.sync();
  }

  static void copy(long from, long to, long bytes) {
    if (from != to) {
      Memory.copy(from, to, bytes);
    }
  }

  /** Needs the root's send. */
  void broadcast(int root, TypedBuffer receive) {
    copy(send(root), receive.address(), receive.bytes());
    island.sync();
  }

  /** Needs the sends; not in place. */
  void allToAllByReading(TypedBuffer send, TypedBuffer receive) {
    long part = send.bytes() / island.size();
    for (int i = 0; i < island.size(); i++) {
      int peer = (island.me() + i) % island.size();
      copy(send(peer) + island.me() * part, receive.address() + peer * part, part);
    }
    island.sync();
  }

  /** Needs the receives; not in place. */
  void allToAllByWriting(TypedBuffer send) {
    long part = send.bytes() / island.size();
    for (int i = 0; i < island.size(); i++) {
      int peer = (island.me() + i) % island.size();
      copy(send.address() + peer * part, receive(peer) + island.me() * part, part);
    }
    island.sync();
  }

  /** Needs the sends. */
  void gather(int root, TypedBuffer send, TypedBuffer receive) {
    if (root == island.me()) {
      for (int peer = 0; peer < island.size(); peer++) {
        copy(send(peer), receive.address() + peer * send.bytes(), send.bytes());
      }
    }
    island.sync();
  }

  /** Needs the root's send. */
  void scatter(int root, TypedBuffer receive) {
    copy(send(root) + island.me() * receive.bytes(), receive.address(), receive.bytes());
    island.sync();
  }

  /**
   * Needs the receives, and that every rank has checked what it is going to get.
   *
   * @param updates per peer
   */
  void raggedAllToAll(RaggedAllToAll operation, int updates) {
    island.sync();
    RaggedLayout layout = operation.layout();
    long rowBytes = layout.rowElements() * operation.send().type().bytes();
    for (int i = 0; i < island.size(); i++) {
      int peer = (island.me() + i) % island.size();
      for (int entry = peer * updates; entry < (peer + 1) * updates; entry++) {
        Memory.copy(
            operation.send().address() + layout.sendOffset(entry) * rowBytes,
            receive(peer) + layout.targetOffset(entry) * rowBytes,
            layout.sendSize(entry) * rowBytes);
      }
    }
    island.sync();
  }
}
