package io.weft.collectives.host;

/**
 * One message in flight: its header and the address of its bytes. Instances are reused, because a
 * header is outside the heap. One thread at a time.
 */
final class Transfer {
  private final Frame frame = new Frame();
  private long address;
  private int sumBytes;
  private long moved;

  /** The header, or the expected header. */
  Frame frame() {
    return frame;
  }

  /**
   * Starts again with other bytes; the caller writes the header.
   *
   * @param summed whether the message has checksums
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

  /** Whether everything but the checksum of the whole message has moved. */
  boolean inSum() {
    return moved >= bodyEnd() && !isDone();
  }

  /** Bytes moved, including headers and checksums. */
  long moved() {
    return moved;
  }

  /** Bytes left of the header and its checksum. */
  long headerLeft() {
    return headBytes() - moved;
  }

  /** The address for the next of the message's bytes. */
  long next() {
    return address + (moved - headBytes());
  }

  /** Bytes of the message that are left. */
  long bodyLeft() {
    return bodyEnd() - moved;
  }

  /** Moved bytes of the checksum of the whole message. */
  long sumMoved() {
    return moved - bodyEnd();
  }

  void move(long bytes) {
    moved += bytes;
  }
}
