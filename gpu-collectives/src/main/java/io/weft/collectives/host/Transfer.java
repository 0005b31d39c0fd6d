package io.weft.collectives.host;

/**
 * One message on its way: its header and where its bytes are. Used again and again, because a
 * header lies outside the heap. One thread at a time.
 */
final class Transfer {
  private final Frame frame = new Frame();
  private long address;
  private int sumBytes;
  private long moved;

  /** What the header says, or is expected to say. */
  Frame frame() {
    return frame;
  }

  /**
   * Starts over with other bytes; the header is the caller's to write.
   *
   * @param summed whether sums go with it
   */
  void start(long bytesAt, boolean summed) {
    address = bytesAt;
    sumBytes = summed ? Frame.SUM_BYTES : 0;
    moved = 0;
  }

  private int headBytes() {
    return Frame.BYTES + sumBytes;
  }

  private long bodyEnd() {
    return headBytes() + frame.bytes();
  }

  private long end() {
    return bodyEnd() + (frame.bytes() > 0 ? sumBytes : 0);
  }

  boolean isDone() {
    return moved == end();
  }

  boolean inHeader() {
    return moved < headBytes();
  }

  boolean inBody() {
    return !inHeader() && moved < bodyEnd();
  }

  /** Whether all but the sum of the whole has moved. */
  boolean inSum() {
    return moved >= bodyEnd() && !isDone();
  }

  /** Bytes moved, of everything. */
  long moved() {
    return moved;
  }

  /** Bytes of the header and its sum that are left. */
  long headerLeft() {
    return headBytes() - moved;
  }

  /** Where the next of the message's bytes goes or comes from. */
  long next() {
    return address + (moved - headBytes());
  }

  /** Bytes of the message that are left. */
  long bodyLeft() {
    return bodyEnd() - moved;
  }

  /** Bytes of the whole's sum that have moved. */
  long sumMoved() {
    return moved - bodyEnd();
  }

  void move(long bytes) {
    moved += bytes;
  }
}
