package io.weft.collectives;

import io.weft.memory.Memory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Exchanges rows whose numbers only the senders know. The ranks first exchange the numbers; then
 * each computes the offsets of all blocks from them, and one {@link RaggedAllToAll} moves the rows
 * into scratch memory. The scratch is a symmetric buffer, or a {@link GpuBuffer} if the
 * communicator has them. It is reused, and grows to the largest exchange, by half each time up to 1
 * GiB if there is room.
 *
 * <p>For one thread at a time. {@link #exchange} is collective. The communicator stays the
 * caller's.
 */
public final class RaggedExchange implements AutoCloseable {
  /** A larger scratch has exactly the size of its exchange. */
  private static final long MOST_SPARE_BYTES = 1L << 30;

  private static final Scratch NO_SCRATCH = new Scratch(null, () -> {});

  private final Communicator communicator;
  private final DataType type;
  private final long rowElements;
  private final SymmetricBuffer sizes;
  private Scratch scratch = NO_SCRATCH;
  private final long[] received;

  /** Memory for rows; no elements before the first exchange. */
  private record Scratch(TypedBuffer elements, Runnable close) {}

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
   * @throws CollectiveException of kind INVALID, on all ranks, if the rows of one do not fit its
   *     send buffer
   */
  public TypedBuffer exchange(TypedBuffer send, long... rows) {
    int n = communicator.nranks();
    int me = communicator.rank();
    String obstacle = obstacle(send, rows);
    long[][] all = gather(obstacle == null ? rows : refused(n));
    requireValid(obstacle, all);
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
    TypedBuffer receive = scratch.elements.slice(0, totals[me] * rowElements);
    communicator.raggedAllToAll(
        send, receive, new RaggedLayout(rowElements, sendOffsets, rows, targetOffsets, received));
    return receive;
  }

  /** Numbers that tell the other ranks that this rank has none. */
  private static long[] refused(int n) {
    long[] none = new long[n];
    Arrays.fill(none, -1);
    return none;
  }

  /** Every rank knows which ranks have no valid rows, so all fail alike. */
  private static void requireValid(String obstacle, long[][] all) {
    List<Integer> invalid = new ArrayList<>();
    for (int from = 0; from < all.length; from++) {
      if (all[from][0] < 0) {
        invalid.add(from);
      }
    }
    if (!invalid.isEmpty()) {
      throw new CollectiveException(
          CollectiveException.Kind.INVALID,
          invalid,
          obstacle != null
              ? obstacle
              : CollectiveException.name(invalid) + " asked for an exchange that does not fit");
    }
  }

  /** Why these rows cannot be sent; null if they can. */
  private String obstacle(TypedBuffer send, long[] rows) {
    long left = send.count() / rowElements;
    for (long each : rows) {
      left = each < 0 || each > left ? -1 : left - each;
    }
    if (rows.length == communicator.nranks() && send.type() == type && left >= 0) {
      return null;
    }
    return "rank %d cannot exchange rows of %d %s: %s rows for %d ranks from %s"
        .formatted(
            communicator.rank(),
            rowElements,
            type,
            Arrays.toString(rows),
            communicator.nranks(),
            send);
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

  /** All ranks know the largest total, so all grow together, and retry together if refused. */
  private void reserve(long elements) {
    if (scratch.elements != null && scratch.elements.count() >= elements) {
      return;
    }
    long grown = Math.max(elements, grown());
    scratch.close.run();
    scratch = NO_SCRATCH;
    try {
      scratch = scratch(grown);
    } catch (CollectiveException e) {
      if (e.kind() != CollectiveException.Kind.INVALID || grown == elements) {
        throw e;
      }
      scratch = scratch(elements);
    }
  }

  private long grown() {
    return scratch.elements == null
        ? 0
        : Math.min(scratch.elements.count() / 2 * 3, MOST_SPARE_BYTES / type.bytes());
  }

  private Scratch scratch(long elements) {
    if (communicator instanceof GpuCommunicator gpus && gpus.hasBuffers()) {
      GpuBuffer buffer = gpus.onDevice(type, elements);
      return new Scratch(buffer.elements(), buffer::close);
    }
    SymmetricBuffer buffer = communicator.symmetric(type, elements);
    return new Scratch(buffer.elements(), buffer::close);
  }

  /** The rows that a rank has sent here in the last exchange. */
  public long receivedRows(int rank) {
    return received[rank];
  }

  /** Closes the scratch memory on this rank. */
  @Override
  public void close() {
    sizes.close();
    scratch.close.run();
  }
}
