package io.weft.collectives.host;

import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.host.RaggedCollectives.RaggedTables;
import io.weft.collectives.host.StagedCollectives.Chunks;

/**
 * The rows of a ragged all-to-all of two ranks, through their stages. Each rank sends the other one
 * stream of bytes, the rows of all updates one after the other. Both ranks know from the tables how
 * long both streams are, so they agree on the number of chunks.
 *
 * <p>One thread at a time.
 */
final class RaggedStages {
  private final HostRanks host;
  private final StagedCollectives staged;
  private final RaggedTables tables;

  RaggedStages(HostRanks host, StagedCollectives staged, RaggedTables tables) {
    this.host = host;
    this.staged = staged;
    this.tables = tables;
  }

  /** Whether the ranks of the host are two. */
  boolean isPair() {
    return host.size() == 2;
  }

  /** Exchanges the rows, after the check of the tables, and copies this rank's own. */
  void exchange(RaggedAllToAll operation) {
    int me = host.me();
    int peer = 1 - me;
    long receive = operation.receive().address();
    RaggedLayout layout = operation.layout();
    long rowBytes = layout.rowElements() * operation.send().type().bytes();
    for (int update = 0; update < tables.updates(); update++) {
      LibraryCopy.copyToAny(
          sent(operation, me, update),
          receive + tables.targetOffset(me, update) * rowBytes,
          tables.size(me, update) * rowBytes);
    }
    staged.run(
        staged.chunks(longestRows(layout, peer) * rowBytes),
        new Chunks() {
          @Override
          public void stage(long chunk, int turn) {
            long to = staged.stage(me, turn);
            pieces(
                chunk,
                update -> layout.sendSize(peer * tables.updates() + update) * rowBytes,
                (update, inUpdate, inChunk, bytes) ->
                    LibraryCopy.copy(
                        sent(operation, peer, update) + inUpdate, to + inChunk, bytes));
          }

          @Override
          public void work(long chunk, int turn) {
            long from = staged.stage(peer, turn);
            pieces(
                chunk,
                update -> tables.size(peer, update) * rowBytes,
                (update, inUpdate, inChunk, bytes) ->
                    LibraryCopy.copyToAny(
                        from + inChunk,
                        receive + tables.targetOffset(peer, update) * rowBytes + inUpdate,
                        bytes));
          }
        });
  }

  /** The address of the rows for a rank. */
  private long sent(RaggedAllToAll operation, int rank, int update) {
    RaggedLayout layout = operation.layout();
    long rowBytes = layout.rowElements() * operation.send().type().bytes();
    return operation.send().address()
        + layout.sendOffset(rank * tables.updates() + update) * rowBytes;
  }

  /** The rows of the longer one of the two streams. */
  private long longestRows(RaggedLayout layout, int peer) {
    long sent = 0;
    long received = 0;
    for (int update = 0; update < tables.updates(); update++) {
      sent += layout.sendSize(peer * tables.updates() + update);
      received += tables.size(peer, update);
    }
    return Math.max(sent, received);
  }

  /** The bytes that a stream has of an update. */
  private interface UpdateBytes {
    long of(int update);
  }

  /** Copies a piece of an update between the buffer and a stage. */
  private interface Piece {
    void copy(int update, long inUpdate, long inChunk, long bytes);
  }

  /** Copies the part of a stream that is in a chunk. */
  private void pieces(long chunk, UpdateBytes sizes, Piece piece) {
    long start = chunk * staged.stageBytes();
    long end = start + staged.stageBytes();
    long at = 0;
    for (int update = 0; update < tables.updates() && at < end; update++) {
      long next = at + sizes.of(update);
      long first = Math.max(start, at);
      long bytes = Math.min(end, next) - first;
      if (bytes > 0) {
        piece.copy(update, first - at, first - start, bytes);
      }
      at = next;
    }
  }
}
