package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.OperationKind;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.PointToPoint.RankGroup;
import io.weft.memory.Memory;
import java.util.List;

/**
 * The ragged all-to-all. Every rank learns from tables what each peer sends, and both check that it
 * fits before rows reach a buffer. Tables are messages or, on one host, deposits of the entry, with
 * which few rows travel too.
 *
 * <p>One thread at a time.
 */
final class RaggedCollectives {
  /** Longer runs of rows are copied by the kernel, if it may. */
  private static final long MAX_MESSAGE_BESIDE_KERNEL = 8 << 10;

  private final int me;
  private final int nranks;
  private final RankGroup pairs;
  private final RaggedTables tables;

  RaggedCollectives(RankGroup members) {
    this.me = members.me();
    this.nranks = members.size();
    this.pairs = members;
    this.tables = new RaggedTables(me, nranks);
  }

  private int peer(int distance) {
    return pairs.at(distance);
  }

  /** Exchanges tables, then rows, as messages. */
  void byMessages(Call call, RaggedAllToAll operation) {
    exchangeTables(call, operation);
    exchangeRows(call, operation);
  }

  /** Sends every peer the table for it, and checks the tables of all. */
  private void exchangeTables(Call call, RaggedAllToAll operation) {
    tables.fill(operation);
    for (int distance = 1; distance < nranks; distance++) {
      int peer = peer(distance);
      pairs.send(call, 0, peer, tables.outgoing(peer), tables.bytesPerPeer());
      pairs.receive(call, 0, peer, tables.incoming(peer), tables.bytesPerPeer());
    }
    pairs.finish();
    tables.check();
  }

  /** Exchanges all rows as messages, after the tables. */
  private void exchangeRows(Call call, RaggedAllToAll operation) {
    startRows(call, operation, Long.MAX_VALUE);
    pairs.finish();
  }

  /**
   * After the tables: every rank reads long runs of rows directly from the send buffers of the
   * others. Both ranks know the length of a run, so they agree on its way.
   */
  private void readRows(Call call, RaggedAllToAll operation, KernelCopyCollectives kernel) {
    startRows(call, operation, MAX_MESSAGE_BESIDE_KERNEL);
    pairs.finish();
    long rowBytes = rowBytes(operation);
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

  private static long rowBytes(RaggedAllToAll operation) {
    return operation.layout().rowElements() * operation.send().type().bytes();
  }

  /** Starts the messages of up to this many bytes, and copies this rank's own rows. */
  private void startRows(Call call, RaggedAllToAll operation, long maxBytes) {
    RaggedLayout layout = operation.layout();
    long rowBytes = rowBytes(operation);
    for (int distance = 0; distance < nranks; distance++) {
      int peer = peer(distance);
      for (int update = 0; update < tables.updates(); update++) {
        int entry = peer * tables.updates() + update;
        long from = operation.send().address() + layout.sendOffset(entry) * rowBytes;
        long sent = layout.sendSize(entry) * rowBytes;
        long to = operation.receive().address() + tables.targetOffset(peer, update) * rowBytes;
        if (peer == me) {
          LibraryCopy.copyToAny(from, to, sent);
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
  }

  /**
   * Deposits of an entry: the table for each other rank, then the rows for each other rank. The
   * note of the entry is twice the number of updates for each rank, plus 1 with rows, or {@link
   * #NO_TABLES}. So tables and rows of few bytes take one line of the processor's caches.
   */
  static final class Deposits {
    private static final long NO_TABLES = -1;

    private final HostRanks host;
    private final RaggedCollectives ragged;
    private final RaggedTables tables;
    private final RaggedStages stages;
    private final long slotBytes;

    /** The deposits of the ranks of a host, which fill the tables of the operation. */
    Deposits(HostRanks host, RaggedCollectives ragged, StagedCollectives staged, long slotBytes) {
      this.host = host;
      this.stages = new RaggedStages(host, staged, ragged.tables);
      this.ragged = ragged;
      this.tables = ragged.tables;
      this.slotBytes = slotBytes;
    }

    private long at(int peer) {
      return host.block(peer).payload(host.stamp(), slotBytes);
    }

    /**
     * Deposits the tables for the prepared entry, if a slot has room, and the rows, if they are few
     * as well.
     *
     * @param maxRowBytes the limit of all rows
     */
    void put(RaggedAllToAll operation, long maxRowBytes) {
      long own = at(host.me());
      int updates = operation.layout().updates(host.size());
      long tableBytes = RaggedTables.bytes(updates) * (host.size() - 1);
      long room = slotBytes - tableBytes;
      if (room < 0) {
        host.writeNote(NO_TABLES);
        return;
      }
      tables.fillDeposit(operation, own);
      boolean rows = putRows(operation, own + tableBytes, Math.min(room, maxRowBytes));
      host.writeNote(2L * updates + (rows ? 1 : 0));
    }

    /** Copies the rows for all other ranks; returns false if they do not fit. */
    private boolean putRows(RaggedAllToAll operation, long rows, long limit) {
      RaggedLayout layout = operation.layout();
      int updates = layout.updates(host.size());
      long rowBytes = rowBytes(operation);
      long done = 0;
      for (int peer = 0; peer < host.size(); peer++) {
        if (peer != host.me()) {
          tables.setPlace(peer, rows + done - at(host.me()));
          for (int entry = peer * updates; entry < (peer + 1) * updates; entry++) {
            long bytes = layout.sendSize(entry) * rowBytes;
            if (bytes > limit - done) {
              return false;
            }
            long from = operation.send().address() + layout.sendOffset(entry) * rowBytes;
            LibraryCopy.copy(from, rows + done, bytes);
            done += bytes;
          }
        }
      }
      return true;
    }

    /**
     * Exchanges the rows, after the entry with the deposits.
     *
     * @param inPlace of the same entry
     * @param kernel null if a rank cannot read the memory of the others
     * @param trial null then, and for more than two ranks
     */
    Algorithm exchange(
        Call call,
        RaggedAllToAll operation,
        InPlaceCollectives inPlace,
        KernelCopyCollectives kernel,
        KernelCopyTrial trial) {
      boolean checked = check();
      if (checked && hasAllRows()) {
        take(operation);
        return Algorithm.ONE_SHOT;
      }
      if (!checked) {
        ragged.exchangeTables(call, operation);
      }
      if (inPlace.reachesReceives()) {
        inPlace.raggedAllToAll(operation, tables.updates());
        return Algorithm.IN_PLACE;
      }
      if (stages.isPair()
          && (trial == null || !trial.prefersKernel(call, bytesByKernel(operation)))) {
        stages.exchange(operation);
        return Algorithm.STAGED;
      }
      if (kernel != null) {
        ragged.readRows(call, operation, kernel);
        return Algorithm.KERNEL_COPY;
      }
      ragged.exchangeRows(call, operation);
      return Algorithm.PAIRWISE;
    }

    /** Of both ranks of a pair: the bytes that the kernel would copy, less those of messages. */
    private long bytesByKernel(RaggedAllToAll operation) {
      int peer = 1 - host.me();
      long rowBytes = rowBytes(operation);
      long bytes = 0;
      for (int update = 0; update < tables.updates(); update++) {
        int entry = peer * tables.updates() + update;
        bytes += byKernel(operation.layout().sendSize(entry) * rowBytes);
        bytes += byKernel(tables.size(peer, update) * rowBytes);
      }
      return bytes;
    }

    private static long byKernel(long run) {
      return run > MAX_MESSAGE_BESIDE_KERNEL ? run : -run;
    }

    /**
     * Checks the tables of the entry; returns false if a rank has deposited none.
     *
     * @throws CollectiveException naming both ranks, of which both find out, if two disagree
     */
    private boolean check() {
      for (int peer = 0; peer < host.size(); peer++) {
        if (note(peer) == NO_TABLES) {
          return false;
        }
      }
      for (int peer = 0; peer < host.size(); peer++) {
        long updates = note(peer) >> 1;
        if (updates != tables.updates()) {
          throw differentUpdates(peer, updates);
        }
        if (peer != host.me()) {
          tables.setIncoming(peer, at(peer));
        }
      }
      tables.check();
      return true;
    }

    private long note(int peer) {
      return host.block(peer).note(host.stamp());
    }

    private CollectiveException differentUpdates(int peer, long updates) {
      int first = Math.min(peer, host.me());
      int second = Math.max(peer, host.me());
      return new CollectiveException(
          CollectiveException.Kind.MISMATCH,
          List.of(host.rank(first), host.rank(second)),
          "%s: rank %d has %d updates for each rank, rank %d has %d"
              .formatted(
                  OperationKind.RAGGED_ALL_TO_ALL,
                  host.rank(peer),
                  updates,
                  host.rank(host.me()),
                  tables.updates()));
    }

    /** Whether all ranks have deposited their rows. */
    private boolean hasAllRows() {
      for (int peer = 0; peer < host.size(); peer++) {
        if ((note(peer) & 1) == 0) {
          return false;
        }
      }
      return true;
    }

    /** Copies the rows of all ranks to their places, after the check. */
    private void take(RaggedAllToAll operation) {
      long rowBytes = rowBytes(operation);
      for (int peer = 0; peer < host.size(); peer++) {
        boolean own = peer == host.me();
        long rows = own ? 0 : at(peer) + tables.place(peer);
        for (int update = 0; update < tables.updates(); update++) {
          long from =
              own ? operation.send().address() + tables.sendOffset(peer, update) * rowBytes : rows;
          long bytes = tables.size(peer, update) * rowBytes;
          Memory.copy(
              from,
              operation.receive().address() + tables.targetOffset(peer, update) * rowBytes,
              bytes);
          rows += bytes;
        }
      }
    }
  }

  /**
   * The tables of a ragged all-to-all. A table from one rank for another has:
   *
   * <pre>
   * long: rows of the sender's receive buffer | long: place of the rows in the sender's deposit
   * | for every update, longs: rows sent, first row of the target, first row in the send buffer,
   *   rows that the sender expects in return
   * </pre>
   */
  static final class RaggedTables {
    private static final int HEAD = 16;
    private static final int ENTRY = 32;

    private final int me;
    private final int nranks;
    private final Scratch scratch = new Scratch();
    private final long[] incoming;
    private RaggedAllToAll operation;
    private int updates;
    private long receiveRows;

    /** The table for this rank. */
    private long own;

    /** The tables for the other ranks, one after the other. */
    private long outgoing;

    RaggedTables(int me, int nranks) {
      this.me = me;
      this.nranks = nranks;
      this.incoming = new long[nranks];
    }

    static long bytes(int updates) {
      return HEAD + (long) ENTRY * updates;
    }

    /** Fills the tables for all peers in scratch memory, which has room for theirs too. */
    void fill(RaggedAllToAll next) {
      long bytes = bytes(next.layout().updates(nranks));
      long memory = scratch.address(2L * nranks * bytes);
      fill(next, memory, memory + bytes);
      for (int peer = 0; peer < nranks; peer++) {
        if (peer != me) {
          incoming[peer] = memory + (nranks + peer) * bytes;
        }
      }
    }

    /** Fills the tables for the other ranks at an address, and the one for this rank elsewhere. */
    void fillDeposit(RaggedAllToAll next, long others) {
      fill(next, scratch.address(bytes(next.layout().updates(nranks))), others);
    }

    private void fill(RaggedAllToAll next, long forMe, long others) {
      operation = next;
      updates = next.layout().updates(nranks);
      receiveRows = next.layout().rows(next.receive().count());
      own = forMe;
      outgoing = others;
      incoming[me] = forMe;
      for (int peer = 0; peer < nranks; peer++) {
        fill(peer, outgoing(peer));
      }
    }

    private void fill(int peer, long table) {
      RaggedLayout layout = operation.layout();
      Memory.putLong(table, receiveRows);
      for (int update = 0; update < updates; update++) {
        int entry = peer * updates + update;
        long at = entry(table, update);
        Memory.putLong(at, layout.sendSize(entry));
        Memory.putLong(at + 8, layout.targetOffset(entry));
        Memory.putLong(at + 16, layout.sendOffset(entry));
        Memory.putLong(at + 24, layout.receiveSize(entry));
      }
    }

    private static long entry(long table, int update) {
      return table + HEAD + (long) ENTRY * update;
    }

    int updates() {
      return updates;
    }

    long bytesPerPeer() {
      return bytes(updates);
    }

    /** The table for a rank. */
    long outgoing(int peer) {
      return peer == me ? own : outgoing + place(me, peer) * bytesPerPeer();
    }

    /** The place of the table for a rank among those of a sender, which has none for itself. */
    private static int place(int sender, int receiver) {
      return receiver < sender ? receiver : receiver - 1;
    }

    /** The address of the table of a peer. */
    long incoming(int peer) {
      return incoming[peer];
    }

    /** Takes the table for this rank from all tables of a peer. */
    void setIncoming(int peer, long tables) {
      incoming[peer] = tables + place(peer, me) * bytesPerPeer();
    }

    /** Sets where the rows for a peer are in this rank's deposit. */
    void setPlace(int peer, long place) {
      Memory.putLong(outgoing(peer) + 8, place);
    }

    /** Where the rows from a peer are in its deposit. */
    long place(int peer) {
      return Memory.getLong(incoming[peer] + 8);
    }

    /** The rows that a peer sends here. */
    long size(int peer, int update) {
      return Memory.getLong(entry(incoming[peer], update));
    }

    /** The first row of this rank's receive buffer that they go to. */
    long targetOffset(int peer, int update) {
      return Memory.getLong(entry(incoming[peer], update) + 8);
    }

    /** The first row that they have in the peer's send buffer. */
    long sendOffset(int peer, int update) {
      return Memory.getLong(entry(incoming[peer], update) + 16);
    }

    /**
     * Compares what each peer sends with what this rank expects and has room for, and the other way
     * round, so that both ranks learn of a mismatch.
     */
    void check() {
      RaggedLayout layout = operation.layout();
      for (int peer = 0; peer < nranks; peer++) {
        long peerRows = Memory.getLong(incoming[peer]);
        for (int update = 0; update < updates; update++) {
          int entry = peer * updates + update;
          RaggedLayout.checkUpdate(
              peer,
              me,
              update,
              layout.receiveSize(entry),
              size(peer, update),
              targetOffset(peer, update),
              receiveRows);
          RaggedLayout.checkUpdate(
              me,
              peer,
              update,
              Memory.getLong(entry(incoming[peer], update) + 24),
              layout.sendSize(entry),
              layout.targetOffset(entry),
              peerRows);
        }
      }
    }
  }
}
