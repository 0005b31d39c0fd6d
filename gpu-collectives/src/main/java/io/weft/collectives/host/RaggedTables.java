package io.weft.collectives.host;

import io.weft.collectives.operation.RaggedAllToAll;
import io.weft.collectives.operation.RaggedLayout;
import io.weft.memory.Memory;

/**
 * The tables that ranks exchange before a ragged all-to-all. A table has the number of updates
 * (long), then 16 bytes for every update: the rows sent (long) and the first row of the target
 * (long). All tables are in scratch memory, first the outgoing, then the incoming ones.
 */
final class RaggedTables {
  private static final int HEADER = 8;
  private static final int ENTRY = 16;

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
