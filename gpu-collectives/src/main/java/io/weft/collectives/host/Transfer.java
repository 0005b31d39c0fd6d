package io.weft.collectives.host;

/**
 * One message on its way: its header and where its bytes are. Used again and again, because a
 * header lies outside the heap. One thread at a time.
 */
final class Transfer {
  private final Frame frame = new Frame();
  private long address;
  private long moved;

  /** What the header says, or is expected to say. */
  Frame frame() {
    return frame;
  }

  /** Starts over with other bytes; the header is the caller's to write. */
  void start(long bytesAt) {
    address = bytesAt;
    moved = 0;
  }

  boolean isDone() {
    return moved == Frame.BYTES + frame.bytes();
  }

  boolean inHeader() {
    return moved < Frame.BYTES;
  }

  /** Header bytes moved. */
  long headerMoved() {
    return moved;
  }

  /** Where the next of the message's bytes goes or comes from. */
  long next() {
    return address + (moved - Frame.BYTES);
  }

  /** Bytes of the message that are left. */
  long left() {
    return Frame.BYTES + frame.bytes() - moved;
  }

  void move(long bytes) {
    moved += bytes;
  }
}
