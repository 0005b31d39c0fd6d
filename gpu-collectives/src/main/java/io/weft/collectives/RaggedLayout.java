package io.weft.collectives;

import java.util.List;

/**
 * The rows that a rank sends to each peer in a {@link RaggedAllToAll}, and the number that it
 * expects. All numbers are rows. Entry {@code peer * updates + i} is update i to (or from) that
 * peer.
 *
 * <p>Immutable.
 */
public final class RaggedLayout {
  private static final long NO_UPDATE = -1;

  private final long rowElements;
  private final long[] sendOffsets;
  private final long[] sendSizes;
  private final long[] targetOffsets;
  private final long[] receiveSizes;
  private final long sentRows;
  private final long receivedRows;

  /**
   * Copies the tables.
   *
   * @param rowElements elements of one row, at least 1, the same on all ranks
   * @param sendOffsets first row in the own send buffer
   * @param sendSizes rows to send, zero or more
   * @param targetOffsets first row in the <em>peer's</em> receive buffer
   * @param receiveSizes rows that the peer is expected to send here
   */
  public RaggedLayout(
      long rowElements,
      long[] sendOffsets,
      long[] sendSizes,
      long[] targetOffsets,
      long[] receiveSizes) {
    this.rowElements = rowElements;
    this.sendOffsets = sendOffsets.clone();
    this.sendSizes = sendSizes.clone();
    this.targetOffsets = targetOffsets.clone();
    this.receiveSizes = receiveSizes.clone();
    this.sentRows = sum(this.sendSizes);
    this.receivedRows = sum(this.receiveSizes);
  }

  public long rowElements() {
    return rowElements;
  }

  /** The number of entries per peer with this number of ranks. */
  public int updates(int nranks) {
    return (int) Division.quotient(sendSizes.length, nranks);
  }

  /** The number of all entries: peers times updates. */
  public int entries() {
    return sendSizes.length;
  }

  public long sendOffset(int entry) {
    return sendOffsets[entry];
  }

  public long sendSize(int entry) {
    return sendSizes[entry];
  }

  public long targetOffset(int entry) {
    return targetOffsets[entry];
  }

  public long receiveSize(int entry) {
    return receiveSizes[entry];
  }

  /** The rows of a buffer of this many elements. */
  public long rows(long elements) {
    return Division.quotient(elements, rowElements);
  }

  /** The number of rows sent to all peers together. */
  public long sentRows() {
    return sentRows;
  }

  /** The number of rows expected from all peers together. */
  long receivedRows() {
    return receivedRows;
  }

  private static long sum(long[] sizes) {
    long rows = 0;
    for (long size : sizes) {
      rows += size;
    }
    return rows;
  }

  void check(int nranks, long sendElements, long receiveElements) {
    if (rowElements < 1) {
      throw invalid("a row of " + rowElements + " elements; at least 1 is needed");
    }
    checkWholeRows("send", sendElements);
    checkWholeRows("receive", receiveElements);
    checkLengths(nranks);
    long sendRows = rows(sendElements);
    long receiveRows = rows(receiveElements);
    long expected = 0;
    for (int entry = 0; entry < entries(); entry++) {
      checkSend(entry, nranks, sendRows);
      expected = addReceive(entry, nranks, expected, receiveRows);
    }
  }

  private void checkWholeRows(String buffer, long elements) {
    if (!Division.isWhole(elements, rowElements)) {
      throw invalid(
          "the "
              + buffer
              + " buffer of "
              + elements
              + " elements is not a whole number of rows of "
              + rowElements);
    }
  }

  private void checkLengths(int nranks) {
    int length = sendSizes.length;
    if (length == 0 || !Division.isWhole(length, nranks)) {
      throw invalid(
          length + " entries are not the same number of updates for each of " + nranks + " ranks");
    }
    if (sendOffsets.length != length
        || targetOffsets.length != length
        || receiveSizes.length != length) {
      throw invalid(
          "tables of different lengths: "
              + sendOffsets.length
              + " send offsets, "
              + length
              + " send sizes, "
              + targetOffsets.length
              + " target offsets, "
              + receiveSizes.length
              + " receive sizes");
    }
  }

  private void checkSend(int entry, int nranks, long rows) {
    long offset = sendOffsets[entry];
    long size = sendSizes[entry];
    if (offset < 0 || size < 0 || targetOffsets[entry] < 0) {
      throw invalid(
          "a negative number in update "
              + describe(entry, nranks)
              + ": offset "
              + offset
              + ", size "
              + size
              + ", target offset "
              + targetOffsets[entry]);
    }
    if (size > rows || offset > rows - size) {
      throw invalid(
          "update "
              + describe(entry, nranks)
              + " reads rows "
              + offset
              + " to "
              + (offset + size)
              + " of a send buffer of "
              + rows);
    }
  }

  private long addReceive(int entry, int nranks, long before, long rows) {
    long size = receiveSizes[entry];
    if (size < 0 || size > rows - before) {
      throw invalid(
          "the receive sizes up to update "
              + describe(entry, nranks)
              + " ("
              + size
              + ") exceed the "
              + rows
              + " rows of the receive buffer, or are negative");
    }
    return before + size;
  }

  /**
   * Compares an update that a peer sends to this rank with the update that this layout expects.
   *
   * @param from the peer
   * @param to this rank
   * @param update index of the update among the peer's updates for this rank
   * @param sentRows rows that the peer sends
   * @param targetOffset first row of the receive buffer that they go to
   * @param receiveRows rows of the receive buffer
   * @throws CollectiveException of kind MISMATCH
   */
  public void checkArrival(
      int from,
      int to,
      int update,
      int nranks,
      long sentRows,
      long targetOffset,
      long receiveRows) {
    int entry = from * updates(nranks) + update;
    long expected = entry < entries() ? receiveSizes[entry] : NO_UPDATE;
    checkUpdate(from, to, update, expected, sentRows, targetOffset, receiveRows);
  }

  /**
   * Compares an update that a rank sends with the one that the target expects, as {@link
   * #checkArrival} does.
   *
   * @param expected rows; negative if the target expects no such update
   */
  public static void checkUpdate(
      int from,
      int to,
      int update,
      long expected,
      long sentRows,
      long targetOffset,
      long receiveRows) {
    if (expected != sentRows || sentRows > receiveRows || targetOffset > receiveRows - sentRows) {
      throw misfit(from, to, update, expected, sentRows, targetOffset, receiveRows);
    }
  }

  private static CollectiveException misfit(
      int from,
      int to,
      int update,
      long expected,
      long sentRows,
      long targetOffset,
      long receiveRows) {
    String text = OperationKind.RAGGED_ALL_TO_ALL + ": update " + update + " of rank " + from;
    if (expected != sentRows) {
      String rows = expected < 0 ? "no such update" : Long.toString(expected);
      return mismatch(
          from,
          to,
          text + " sends " + sentRows + " rows to rank " + to + ", which expects " + rows);
    }
    return mismatch(
        from,
        to,
        text
            + " writes rows "
            + targetOffset
            + " to "
            + (targetOffset + sentRows)
            + " of the receive buffer of rank "
            + to
            + ", which has "
            + receiveRows);
  }

  private static CollectiveException mismatch(int from, int to, String message) {
    return new CollectiveException(
        CollectiveException.Kind.MISMATCH,
        List.of(Math.min(from, to), Math.max(from, to)),
        message);
  }

  private String describe(int entry, int nranks) {
    int updates = updates(nranks);
    return entry % updates + " for rank " + entry / updates;
  }

  private static CollectiveException invalid(String message) {
    return CollectiveException.invalid(OperationKind.RAGGED_ALL_TO_ALL + ": " + message);
  }
}
