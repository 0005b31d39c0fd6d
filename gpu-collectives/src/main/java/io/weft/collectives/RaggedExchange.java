package io.weft.collectives;

import io.weft.memory.Memory;
import java.util.Arrays;

/**
 * Exchanges rows whose numbers only the senders know. The ranks first exchange the numbers; then
 * each computes the offsets of all blocks from them, and one {@link RaggedAllToAll} moves the rows
 * into scratch memory. The scratch is a symmetric buffer, which grows to the largest exchange so
 * far and is reused.
 *
 * <p>For one thread at a time. {@link #exchange} is collective. The communicator stays the
 * caller's.
 */
public final class RaggedExchange implements AutoCloseable {
  private final Communicator communicator;
  private final DataType type;
  private final long rowElements;
  private final SymmetricBuffer sizes;
  private SymmetricBuffer scratch;
  private final long[] received;

  /**
   * Opens an exchange without scratch memory. Collective.
   *
   * @param type of the elements
   * @param rowElements elements of one row, 1 or more; both are the same on all ranks
   */
  public RaggedExchange(Communicator communicator, DataType type, long rowElements) {
    if (rowElements < 1) {
      throw CollectiveException.invalid("a row of " + rowElements + " elements");
    }
    int n = communicator.nranks();
    this.communicator = communicator;
    this.type = type;
    this.rowElements = rowElements;
    this.sizes = communicator.symmetric(DataType.INT64, (long) n * n);
    this.received = new long[n];
  }

  /**
   * Sends rows to all ranks and returns what they have sent here.
   *
   * @param send rows for rank 0, then those for rank 1, and so on; may end with rows for no rank
   * @param rows how many rows each rank gets, 0 or more
   * @return rows of rank 0, then those of rank 1, and so on; valid until the next exchange
   * @throws CollectiveException of kind INVALID if the rows do not fit the send buffer
   */
  public TypedBuffer exchange(TypedBuffer send, long... rows) {
    int n = communicator.nranks();
    int me = communicator.rank();
    requireRows(send, rows);
    long[][] all = gather(rows);
    long[] sendOffsets = new long[n];
    long[] targetOffsets = new long[n];
    long[] totals = new long[n];
    long largest = 0;
    for (int to = 0; to < n; to++) {
      sendOffsets[to] = to == 0 ? 0 : sendOffsets[to - 1] + rows[to - 1];
      received[to] = all[to][me];
      for (int from = 0; from < n; from++) {
        targetOffsets[to] += from < me ? all[from][to] : 0;
        totals[to] = Math.addExact(totals[to], all[from][to]);
      }
      largest = Math.max(largest, totals[to]);
    }
    reserve(Math.multiplyExact(largest, rowElements));
    TypedBuffer receive = scratch.elements().slice(0, totals[me] * rowElements);
    communicator.raggedAllToAll(
        send, receive, new RaggedLayout(rowElements, sendOffsets, rows, targetOffsets, received));
    return receive;
  }

  private void requireRows(TypedBuffer send, long[] rows) {
    long sum = 0;
    for (long each : rows) {
      sum = each < 0 || sum < 0 ? -1 : Math.addExact(sum, each);
    }
    boolean fits = sum >= 0 && sum <= send.count() / rowElements;
    if (rows.length != communicator.nranks() || send.type() != type || !fits) {
      throw CollectiveException.invalid(
          "rank %d cannot exchange rows of %d %s: %s rows for %d ranks from %s"
              .formatted(
                  communicator.rank(),
                  rowElements,
                  type,
                  Arrays.toString(rows),
                  communicator.nranks(),
                  send));
    }
  }

  /** The rows from each rank to each rank. */
  private long[][] gather(long[] rows) {
    int n = rows.length;
    TypedBuffer all = sizes.elements();
    TypedBuffer own = all.slice((long) n * communicator.rank(), n);
    for (int to = 0; to < n; to++) {
      Memory.putLong(own.address() + 8L * to, rows[to]);
    }
    communicator.allGather(own, all);
    long[][] table = new long[n][n];
    for (int from = 0; from < n; from++) {
      for (int to = 0; to < n; to++) {
        table[from][to] = Memory.getLong(all.address() + 8L * (from * (long) n + to));
      }
    }
    return table;
  }

  /** All ranks know the largest total, so all grow together. */
  private void reserve(long elements) {
    if (scratch == null || scratch.elements().count() < elements) {
      if (scratch != null) {
        scratch.close();
      }
      scratch = communicator.symmetric(type, elements);
    }
  }

  /** The rows that a rank has sent here in the last exchange. */
  public long receivedRows(int rank) {
    return received[rank];
  }

  /** Closes the scratch memory on this rank. */
  @Override
  public void close() {
    sizes.close();
    if (scratch != null) {
      scratch.close();
    }
  }
}
