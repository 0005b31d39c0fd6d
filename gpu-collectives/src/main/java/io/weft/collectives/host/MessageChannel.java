package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * The messages between this rank and one other over one link, in their order each way. Every
 * message starts with a {@link FrameHeader}, and the receiver knows the expected header beforehand.
 * When the link leaves the host, the header and the whole message each have a checksum, and a
 * message is complete only when both match. No method blocks. One thread at a time.
 */
final class MessageChannel {
  private final int me;
  private final int peer;
  private final ByteLink link;
  private final Deque<InFlightMessage> spare;
  private final Deque<InFlightMessage> out = new ArrayDeque<>();
  private final Deque<InFlightMessage> in = new ArrayDeque<>();
  private final FrameHeader arrived = new FrameHeader();
  private final MessageChecksum outSum = new MessageChecksum();
  private final MessageChecksum inSum = new MessageChecksum();
  private boolean pushed = true;

  /** Why no more messages are accepted. */
  private CollectiveException spoiled;

  /**
   * Starts without messages.
   *
   * @param spare receives finished transfers for reuse
   */
  MessageChannel(int me, int peer, ByteLink link, Deque<InFlightMessage> spare) {
    this.me = me;
    this.peer = peer;
    this.link = link;
    this.spare = spare;
  }

  int peer() {
    return peer;
  }

  /** Starts a send; the caller writes the header before the next progress. */
  FrameHeader send(long address) {
    return start(address, out);
  }

  /** Starts a receive; the caller writes the expected header before the next progress. */
  FrameHeader receive(long address) {
    return start(address, in);
  }

  private FrameHeader start(long address, Deque<InFlightMessage> queue) {
    InFlightMessage transfer = spare.poll();
    if (transfer == null) {
      transfer = new InFlightMessage();
    }
    transfer.start(address, link.leavesHost());
    queue.add(transfer);
    return transfer.frame();
  }

  boolean isIdle() {
    return out.isEmpty() && in.isEmpty() && pushed;
  }

  /** The number of messages with bytes left to send. */
  int sending() {
    return out.size();
  }

  /** The number of messages that have not arrived completely. */
  int receiving() {
    return in.size();
  }

  /** Sends as much as the link accepts; returns whether any byte moved. */
  boolean progressOut() {
    boolean moved = false;
    for (InFlightMessage next = out.peek(); next != null; next = out.peek()) {
      moved |= put(next);
      if (!next.isDone()) {
        break;
      }
      spare.add(out.remove());
    }
    if (moved || !pushed) {
      pushed = link.push();
      moved |= pushed;
    }
    return moved;
  }

  private boolean put(InFlightMessage transfer) {
    long before = transfer.moved();
    FrameHeader frame = transfer.frame();
    if (transfer.inHeader()) {
      if (before == 0 && link.leavesHost()) {
        frame.sum(outSum.startWith(frame));
      }
      transfer.move(link.put(frame.address() + before, transfer.headerLeft()));
    }
    if (transfer.inBody()) {
      long from = transfer.next();
      int bytes = link.put(from, transfer.bodyLeft());
      transfer.move(bytes);
      if (link.leavesHost()) {
        outSum.add(from, bytes);
        frame.wholeSum(outSum.value());
      }
    }
    if (transfer.inSum()) {
      long at = transfer.sumMoved();
      transfer.move(link.put(frame.wholeSumAddress() + at, FrameHeader.SUM_BYTES - at));
    }
    return transfer.moved() != before;
  }

  /**
   * Takes bytes that have arrived; returns whether any byte moved.
   *
   * @throws CollectiveException when the message is not the expected one, or was corrupted on its
   *     way; every later call throws it again
   */
  boolean progressIn() {
    boolean moved = false;
    for (InFlightMessage next = in.peek(); next != null; next = in.peek()) {
      moved |= take(next);
      if (!next.isDone()) {
        break;
      }
      spare.add(in.remove());
    }
    return moved;
  }

  private boolean take(InFlightMessage transfer) {
    if (spoiled != null) {
      throw spoiled;
    }
    long before = transfer.moved();
    if (transfer.inHeader()) {
      transfer.move(link.take(arrived.address() + before, transfer.headerLeft()));
      if (!transfer.inHeader()) {
        check(transfer.frame());
      }
    }
    if (transfer.inBody()) {
      long to = transfer.next();
      int bytes = link.take(to, transfer.bodyLeft());
      transfer.move(bytes);
      if (link.leavesHost()) {
        inSum.add(to, bytes);
      }
    }
    if (transfer.inSum()) {
      long at = transfer.sumMoved();
      transfer.move(link.take(arrived.wholeSumAddress() + at, FrameHeader.SUM_BYTES - at));
      if (transfer.isDone() && inSum.value() != arrived.wholeSum()) {
        spoiled = damaged(transfer.frame(), "it", inSum.value(), arrived.wholeSum());
        throw spoiled;
      }
    }
    return transfer.moved() != before;
  }

  /** Checks a complete header. */
  private void check(FrameHeader expected) {
    int found = link.leavesHost() ? inSum.startWith(arrived) : 0;
    if (link.leavesHost() && found != arrived.sum()) {
      spoiled = damaged(expected, "its header", found, arrived.sum());
      throw spoiled;
    }
    if (!arrived.sameAs(expected)) {
      spoiled = mismatch(expected);
      throw spoiled;
    }
  }

  /** Not a mismatch: no program is wrong, and a retry may work. */
  private CollectiveException damaged(FrameHeader expected, String what, int found, int promised) {
    return new CollectiveException(
        Kind.IO,
        List.of(peer),
        "message #%s of rank %d was damaged on its way to rank %d: %s has CRC32C %08x, expected %08x"
            .formatted(describe(expected), peer, me, what, found, promised));
  }

  private CollectiveException mismatch(FrameHeader expected) {
    if (!expected.signature().isCollective()) {
      return new CollectiveException(
          Kind.MISMATCH,
          List.of(Math.min(me, peer), Math.max(me, peer)),
          "rank "
              + peer
              + " sends its message #"
              + describe(arrived)
              + " but rank "
              + me
              + " receives message #"
              + describe(expected));
    }
    return SignatureMismatch.between(
        me,
        expected.signature(),
        expected.sequence(),
        peer,
        arrived.signature(),
        arrived.sequence());
  }

  private static String describe(FrameHeader frame) {
    return frame.sequence() + ": " + frame.signature() + " in " + frame.bytes() + " bytes";
  }

  /**
   * One message in flight: its header and the address of its bytes. Instances are reused, because a
   * header is outside the heap. One thread at a time.
   */
  static final class InFlightMessage {
    private final FrameHeader frame = new FrameHeader();
    private long address;
    private int sumBytes;
    private long moved;

    /** The header, or the expected header. */
    FrameHeader frame() {
      return frame;
    }

    /**
     * Starts again with other bytes; the caller writes the header.
     *
     * @param summed whether the message has checksums
     */
    void start(long bytesAt, boolean summed) {
      address = bytesAt;
      sumBytes = summed ? FrameHeader.SUM_BYTES : 0;
      moved = 0;
    }

    private int headBytes() {
      return FrameHeader.BYTES + sumBytes;
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

  /**
   * Computes the CRC32C (Castagnoli) of a message piece by piece, while the bytes are in the
   * processor's cache. One thread at a time.
   */
  static final class MessageChecksum {
    private final CRC32C sum = new CRC32C();
    private final ByteBuffer view = ByteBuffer.allocateDirect(0);

    /** Starts again with a header; the message's bytes follow. */
    int startWith(FrameHeader frame) {
      sum.reset();
      add(frame.address(), FrameHeader.BYTES);
      return value();
    }

    /** Adds the next bytes. */
    void add(long address, int bytes) {
      Memory.aim(view, address, bytes);
      sum.update(view);
    }

    /** The checksum of all bytes so far. */
    int value() {
      return (int) sum.getValue();
    }
  }

  /**
   * A byte stream to one peer and one from it. No method blocks.
   *
   * <p>One thread at a time.
   */
  interface ByteLink {
    /**
     * Appends as many bytes as there is room for; the peer may not see them before {@link #push}.
     *
     * @return the number of bytes appended, possibly 0
     */
    int put(long address, long bytes);

    /**
     * Sends appended bytes towards the peer.
     *
     * @return whether all are on their way, so that this rank need not call again
     */
    boolean push();

    /**
     * Takes bytes that have arrived.
     *
     * @return the number of bytes taken, possibly 0
     */
    int take(long address, long bytes);

    /** Whether bytes go through a network, which may corrupt them, so that they need checksums. */
    default boolean leavesHost() {
      return false;
    }

    /** The kinds of messages. Each kind has its own links, so neither delays the other. */
    enum Traffic {
      /** The sends and receives of users. */
      PAIRS(0),
      /** The internal messages of collectives. */
      COLLECTIVES(1);

      static final int COUNT = 2;

      private final int number;

      Traffic(int number) {
        this.number = number;
      }

      int number() {
        return number;
      }

      int index(int ranks, int peer) {
        return number * ranks + peer;
      }
    }
  }
}
