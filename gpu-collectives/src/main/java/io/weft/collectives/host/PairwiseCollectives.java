package io.weft.collectives.host;

import io.weft.collectives.AllToAll;
import io.weft.collectives.Gather;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.memory.Memory;

/**
 * Operations in which every pair of ranks exchanges different data. See {@link
 * io.weft.collectives.Algorithm#PAIRWISE}. Each rank starts with the peer after itself, so that not
 * all ranks start with the same one.
 */
final class PairwiseCollectives {
  /**
   * The temporary memory of an all-to-all on one buffer, for all peers together. It limits the
   * messages of every all-to-all: each rank chooses on its own whether it uses one buffer.
   */
  static final long TEMPORARY_BYTES = 4 << 20;

  /**
   * With very many ranks it is more, because the headers of shorter messages would cost too much.
   */
  private static final long MIN_CHUNK_BYTES = 16 << 10;

  /** Longer runs of rows are copied by the kernel, if it may. */
  private static final long MAX_MESSAGE_BESIDE_KERNEL = 8 << 10;

  /** The messages to or from one peer that an all-to-all on two buffers starts at once. */
  private static final int MESSAGES_AHEAD = 16;

  private final int me;
  private final int nranks;
  private final RankGroup pairs;
  private final Scratch scratch = new Scratch();

  PairwiseCollectives(RankGroup members) {
    this.me = members.me();
    this.nranks = members.size();
    this.pairs = members;
  }

  private int peer(int distance) {
    return pairs.at(distance);
  }

  void allToAll(Call call, AllToAll operation) {
    long part = operation.send().bytes() / nranks;
    long from = operation.send().address();
    long to = operation.receive().address();
    if (from == to) {
      allToAllInPlace(call, from, part);
      return;
    }
    long chunkBytes = chunkBytes(part);
    for (int step = 0; step < steps(part); step++) {
      long done = step * chunkBytes;
      long bytes = Math.min(chunkBytes, part - done);
      for (int distance = 1; distance < nranks; distance++) {
        int peer = peer(distance);
        pairs.awaitSends(peer, MESSAGES_AHEAD);
        pairs.awaitReceives(peer, MESSAGES_AHEAD);
        pairs.send(call, step, peer, from + peer * part + done, bytes);
        pairs.receive(call, step, peer, to + peer * part + done, bytes);
      }
    }
    Memory.copy(from + me * part, to + me * part, part);
    pairs.finish();
  }

  private long chunkBytes(long part) {
    return Math.min(part, Math.max(MIN_CHUNK_BYTES, TEMPORARY_BYTES / 2 / nranks));
  }

  /** The messages to each peer, at least one: even an empty one tells of a mismatch. */
  private int steps(long part) {
    return part == 0 ? 1 : Math.toIntExact((part - 1) / chunkBytes(part) + 1);
  }

  /**
   * Every pair swaps its parts chunk by chunk. A chunk is copied to temporary memory until it has
   * been sent, and the peer's chunk takes its place. Two chunks for each peer are in flight, so one
   * is sent while the next is copied.
   */
  private void allToAllInPlace(Call call, long buffer, long part) {
    long chunkBytes = chunkBytes(part);
    long temporary = scratch.address(2 * chunkBytes * nranks);
    for (int step = 0; step < steps(part); step++) {
      long done = step * chunkBytes;
      long bytes = Math.min(chunkBytes, part - done);
      for (int distance = 1; distance < nranks; distance++) {
        int peer = peer(distance);
        long chunk = buffer + peer * part + done;
        long kept = temporary + (2L * peer + step % 2) * chunkBytes;
        pairs.awaitSends(peer, 1);
        Memory.copy(chunk, kept, bytes);
        pairs.send(call, step, peer, kept, bytes);
        pairs.receive(call, step, peer, chunk, bytes);
      }
    }
    pairs.finish();
  }

  void gather(Call call, Gather operation) {
    TypedBuffer send = operation.send();
    if (operation.root() != me) {
      pairs.send(call, 0, operation.root(), send.address(), send.bytes());
    } else {
      long to = operation.receive().address();
      for (int distance = 1; distance < nranks; distance++) {
        int peer = peer(distance);
        pairs.receive(call, 0, peer, to + peer * send.bytes(), send.bytes());
      }
      copyUnlessSame(send.address(), to + me * send.bytes(), send.bytes());
    }
    pairs.finish();
  }

  void scatter(Call call, Scatter operation) {
    TypedBuffer receive = operation.receive();
    if (operation.root() != me) {
      pairs.receive(call, 0, operation.root(), receive.address(), receive.bytes());
    } else {
      long from = operation.send().address();
      for (int distance = 1; distance < nranks; distance++) {
        int peer = peer(distance);
        pairs.send(call, 0, peer, from + peer * receive.bytes(), receive.bytes());
      }
      copyUnlessSame(from + me * receive.bytes(), receive.address(), receive.bytes());
    }
    pairs.finish();
  }

  private static void copyUnlessSame(long from, long to, long bytes) {
    if (from != to) {
      Memory.copy(from, to, bytes);
    }
  }

  /**
   * First every rank sends every peer the sizes and offsets of its updates, and each checks that
   * they fit. Only then are rows sent.
   */
  void raggedAllToAll(Call call, RaggedAllToAll operation) {
    RaggedTables tables = exchangeTables(call, operation);
    for (int distance = 0; distance < nranks; distance++) {
      exchangeRows(call, operation, tables, peer(distance), Long.MAX_VALUE);
    }
    pairs.finish();
  }

  /**
   * Exchanges the tables as above; then every rank reads long runs of rows directly from the send
   * buffers of the others. Both ranks know the length of a run, so they agree on its way.
   */
  void raggedAllToAllByKernel(Call call, RaggedAllToAll operation, KernelCopyCollectives kernel) {
    RaggedTables tables = exchangeTables(call, operation);
    for (int distance = 0; distance < nranks; distance++) {
      exchangeRows(call, operation, tables, peer(distance), MAX_MESSAGE_BESIDE_KERNEL);
    }
    pairs.finish();
    long rowBytes = operation.layout().rowElements() * operation.send().type().bytes();
    for (int distance = 1; distance < nranks; distance++) {
      int peer = peer(distance);
      for (int update = 0; update < tables.updates(); update++) {
        long bytes = tables.size(peer, update) * rowBytes;
        if (bytes > MAX_MESSAGE_BESIDE_KERNEL) {
          long from = tables.sendOffset(peer, update) * rowBytes;
          long to = operation.receive().address() + tables.targetOffset(peer, update) * rowBytes;
          kernel.readRows(call, peer, from, to, bytes);
        }
      }
    }
    kernel.endReads();
  }

  /**
   * Exchanges the tables as above; then every rank writes its rows directly into the receive
   * buffers of the others.
   */
  void raggedAllToAllInPlace(Call call, RaggedAllToAll operation, InPlaceCollectives inPlace) {
    RaggedTables tables = exchangeTables(call, operation);
    inPlace.raggedAllToAll(operation, tables.updates());
  }

  private RaggedTables exchangeTables(Call call, RaggedAllToAll operation) {
    RaggedTables tables = new RaggedTables(operation, me, nranks, scratch);
    for (int distance = 1; distance < nranks; distance++) {
      int peer = peer(distance);
      pairs.send(call, 0, peer, tables.outgoing(peer), tables.bytesPerPeer());
      pairs.receive(call, 0, peer, tables.incoming(peer), tables.bytesPerPeer());
    }
    pairs.finish();
    tables.check();
    return tables;
  }

  /** Starts the messages of up to this many bytes, and copies this rank's own rows. */
  private void exchangeRows(
      Call call, RaggedAllToAll operation, RaggedTables tables, int peer, long maxBytes) {
    RaggedLayout layout = operation.layout();
    long rowBytes = layout.rowElements() * operation.send().type().bytes();
    for (int update = 0; update < tables.updates(); update++) {
      int entry = peer * tables.updates() + update;
      long from = operation.send().address() + layout.sendOffset(entry) * rowBytes;
      long sent = layout.sendSize(entry) * rowBytes;
      long to = operation.receive().address() + tables.targetOffset(peer, update) * rowBytes;
      if (peer == me) {
        Memory.copy(from, to, sent);
      } else {
        if (sent <= maxBytes) {
          pairs.send(call, 1 + update, peer, from, sent);
        }
        long received = tables.size(peer, update) * rowBytes;
        if (received <= maxBytes) {
          pairs.receive(call, 1 + update, peer, to, received);
        }
      }
    }
  }

  /**
   * The tables that ranks exchange before a ragged all-to-all. A table has the number of updates
   * (long), then 24 bytes for every update: the rows sent (long), the first row of the target
   * (long) and the first row in the send buffer (long). All tables are in scratch memory, first the
   * outgoing, then the incoming ones.
   */
  static final class RaggedTables {
    private static final int HEADER = 8;
    private static final int ENTRY = 24;

    private final RaggedAllToAll operation;
    private final int me;
    private final int nranks;
    private final int updates;
    private final long memory;

    RaggedTables(RaggedAllToAll operation, int me, int nranks, Scratch scratch) {
      this.operation = operation;
      this.me = me;
      this.nranks = nranks;
      this.updates = operation.layout().updates(nranks);
      this.memory = scratch.address(2L * nranks * bytesPerPeer());
      for (int peer = 0; peer < nranks; peer++) {
        fill(peer, outgoing(peer));
      }
      fill(me, incoming(me));
    }

    private void fill(int peer, long table) {
      RaggedLayout layout = operation.layout();
      Memory.putLong(table, updates);
      for (int update = 0; update < updates; update++) {
        int entry = peer * updates + update;
        Memory.putLong(table + HEADER + (long) ENTRY * update, layout.sendSize(entry));
        Memory.putLong(table + HEADER + (long) ENTRY * update + 8, layout.targetOffset(entry));
        Memory.putLong(table + HEADER + (long) ENTRY * update + 16, layout.sendOffset(entry));
      }
    }

    int updates() {
      return updates;
    }

    long bytesPerPeer() {
      return HEADER + (long) ENTRY * updates;
    }

    /** The table for a peer. */
    long outgoing(int peer) {
      return memory + peer * bytesPerPeer();
    }

    /** The address for the table of a peer. */
    long incoming(int peer) {
      return memory + (nranks + peer) * bytesPerPeer();
    }

    /** The rows that a peer sends here. */
    long size(int peer, int update) {
      return Memory.getLong(incoming(peer) + HEADER + (long) ENTRY * update);
    }

    /** The first row of this rank's receive buffer that they go to. */
    long targetOffset(int peer, int update) {
      return Memory.getLong(incoming(peer) + HEADER + (long) ENTRY * update + 8);
    }

    /** The first row that they have in the peer's send buffer. */
    long sendOffset(int peer, int update) {
      return Memory.getLong(incoming(peer) + HEADER + (long) ENTRY * update + 16);
    }

    /** Compares all incoming updates with the updates that this rank expects and has room for. */
    void check() {
      RaggedLayout layout = operation.layout();
      long rows = operation.receive().count() / layout.rowElements();
      for (int peer = 0; peer < nranks; peer++) {
        for (int update = 0; update < updates; update++) {
          layout.checkArrival(
              peer, me, update, nranks, size(peer, update), targetOffset(peer, update), rows);
        }
      }
    }
  }
}
