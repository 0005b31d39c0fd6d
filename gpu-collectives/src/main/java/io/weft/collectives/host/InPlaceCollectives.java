package io.weft.collectives.host;

import io.weft.collectives.AllReduce;
import io.weft.collectives.Division;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.TypedBuffer;

/**
 * Large operations on symmetric buffers, which every rank of the host can reach. See {@link
 * io.weft.collectives.Algorithm#IN_PLACE}.
 *
 * <p>Called after the entry, in which all ranks have published where their buffers are. Ends with a
 * sync, because until then other ranks read or write this rank's buffers.
 */
final class InPlaceCollectives {
  private final HostRanks host;
  private final Reductions reductions;
  private final SymmetricTable table;
  private final long[] sources;
  private final long[] targets;

  InPlaceCollectives(HostRanks host, Reductions reductions, SymmetricTable table) {
    this.host = host;
    this.reductions = reductions;
    this.table = table;
    this.sources = new long[host.size()];
    this.targets = new long[host.size()];
  }

  /** Whether every rank's send buffer of this entry is symmetric. */
  boolean reachesSends() {
    for (int peer = 0; peer < host.size(); peer++) {
      if (!reachesSend(peer)) {
        return false;
      }
    }
    return true;
  }

  /** Whether every rank's receive buffer of this entry is symmetric. */
  boolean reachesReceives() {
    for (int peer = 0; peer < host.size(); peer++) {
      if (!reachesReceive(peer)) {
        return false;
      }
    }
    return true;
  }

  /** Whether no rank's buffers of this entry are symmetric. */
  boolean reachesNone() {
    for (int peer = 0; peer < host.size(); peer++) {
      if (reaches(peer)) {
        return false;
      }
    }
    return true;
  }

  /** Whether a buffer of the rank is symmetric. */
  boolean reaches(int peer) {
    return reachesSend(peer) || reachesReceive(peer);
  }

  boolean reachesSend(int peer) {
    return host.block(peer).sendDescriptor(host.stamp()) != SymmetricTable.NONE;
  }

  boolean reachesReceive(int peer) {
    return host.block(peer).receiveDescriptor(host.stamp()) != SymmetricTable.NONE;
  }

  private long send(int peer) {
    return table.resolve(peer, host.block(peer).sendDescriptor(host.stamp()));
  }

  private long receive(int peer) {
    return table.resolve(peer, host.block(peer).receiveDescriptor(host.stamp()));
  }

  /** Requires that the send and receive buffers of all ranks are symmetric. */
  void allReduce(AllReduce operation) {
    Shares shares = shares(operation.send());
    long share = shares.start(host.me()) * operation.send().type().bytes();
    for (int peer = 0; peer < sources.length; peer++) {
      sources[peer] = send(peer) + share;
      targets[peer] = receive(peer) + share;
    }
    run(operation.send(), operation.op(), targets.length, shares.length(host.me()));
    host.sync();
  }

  private Shares shares(TypedBuffer buffer) {
    return new Shares(buffer.count(), host.size(), buffer.type().bytes());
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

  /** Requires that the send buffers and the root's receive buffer are symmetric. */
  void reduce(Reduce operation) {
    Shares shares = shares(operation.send());
    long share = shares.start(host.me()) * operation.send().type().bytes();
    for (int peer = 0; peer < sources.length; peer++) {
      sources[peer] = send(peer) + share;
    }
    targets[0] = receive(operation.root()) + share;
    run(operation.send(), operation.op(), 1, shares.length(host.me()));
    host.sync();
  }

  /** Requires that the send buffers are symmetric. */
  void reduceScatter(ReduceScatter operation) {
    TypedBuffer receive = operation.receive();
    for (int peer = 0; peer < sources.length; peer++) {
      sources[peer] = send(peer) + host.me() * receive.bytes();
    }
    targets[0] = receive.address();
    run(operation.send(), operation.op(), 1, receive.count());
    host.sync();
  }

  /**
   * Requires that the send buffers are symmetric and this rank's part is copied. Every rank starts
   * with a different peer.
   */
  void allGatherByReading(TypedBuffer send, TypedBuffer receive) {
    for (int i = 1; i < host.size(); i++) {
      int peer = host.after(i);
      copy(send(peer), receive.address() + peer * send.bytes(), send.bytes());
    }
    host.sync();
  }

  /** Requires that the receive buffers are symmetric. */
  void allGatherByWriting(TypedBuffer send) {
    for (int i = 0; i < host.size(); i++) {
      int peer = host.after(i);
      copy(send.address(), receive(peer) + host.me() * send.bytes(), send.bytes());
    }
    host.sync();
  }

  static void copy(long from, long to, long bytes) {
    if (from != to) {
      LibraryCopy.copyToAny(from, to, bytes);
    }
  }

  /** Requires that the root's send buffer is symmetric. */
  void broadcast(int root, TypedBuffer receive) {
    copy(send(root), receive.address(), receive.bytes());
    host.sync();
  }

  /** Requires that the send buffers are symmetric; not in place. */
  void allToAllByReading(TypedBuffer send, TypedBuffer receive) {
    long part = Division.quotient(send.bytes(), host.size());
    for (int i = 0; i < host.size(); i++) {
      int peer = host.after(i);
      copy(send(peer) + host.me() * part, receive.address() + peer * part, part);
    }
    host.sync();
  }

  /** Requires that the receive buffers are symmetric; not in place. */
  void allToAllByWriting(TypedBuffer send) {
    long part = Division.quotient(send.bytes(), host.size());
    for (int i = 0; i < host.size(); i++) {
      int peer = host.after(i);
      copy(send.address() + peer * part, receive(peer) + host.me() * part, part);
    }
    host.sync();
  }

  /** Requires that the send buffers are symmetric. */
  void gather(int root, TypedBuffer send, TypedBuffer receive) {
    if (root == host.me()) {
      for (int peer = 0; peer < host.size(); peer++) {
        copy(send(peer), receive.address() + peer * send.bytes(), send.bytes());
      }
    }
    host.sync();
  }

  /** Requires that the root's send buffer is symmetric. */
  void scatter(int root, TypedBuffer receive) {
    copy(send(root) + host.me() * receive.bytes(), receive.address(), receive.bytes());
    host.sync();
  }

  /**
   * Requires that the receive buffers are symmetric, and that this rank has checked that its rows
   * fit theirs.
   *
   * @param updates per peer
   */
  void raggedAllToAll(RaggedAllToAll operation, int updates) {
    RaggedLayout layout = operation.layout();
    long rowBytes = layout.rowElements() * operation.send().type().bytes();
    for (int i = 0; i < host.size(); i++) {
      int peer = host.after(i);
      for (int entry = peer * updates; entry < (peer + 1) * updates; entry++) {
        LibraryCopy.copyToAny(
            operation.send().address() + layout.sendOffset(entry) * rowBytes,
            receive(peer) + layout.targetOffset(entry) * rowBytes,
            layout.sendSize(entry) * rowBytes);
      }
    }
    host.sync();
  }
}
