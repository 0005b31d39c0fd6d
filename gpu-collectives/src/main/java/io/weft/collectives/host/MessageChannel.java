package io.weft.collectives.host;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/**
 * The messages between this rank and one other over one link, in their order each way. Every
 * message starts with a {@link Frame}, and the receiver knows the expected header beforehand. When
 * the link leaves the host, the header and the whole message each have a checksum, and a message is
 * complete only when both match. No method blocks. One thread at a time.
 */
final class MessageChannel {
  private final int me;
  private final int peer;
  private final Link link;
  private final Deque<Transfer> spare;
  private final Deque<Transfer> out = new ArrayDeque<>();
  private final Deque<Transfer> in = new ArrayDeque<>();
  private final Frame arrived = new Frame();
  private final MessageSum outSum = new MessageSum();
  private final MessageSum inSum = new MessageSum();
  private boolean pushed = true;

  /** Why no more messages are accepted. */
  private CollectiveException spoiled;

  /**
   * Starts without messages.
   *
   * @param spare receives finished transfers for reuse
   */
  MessageChannel(int me, int peer, Link link, Deque<Transfer> spare) {
    this.me = me;
    this.peer = peer;
    this.link = link;
    this.spare = spare;
  }

  int peer() {
    return peer;
  }

  /** Starts a send; the caller writes the header before the next progress. */
  Frame send(long address) {
    return start(address, out);
  }

  /** Starts a receive; the caller writes the expected header before the next progress. */
  Frame receive(long address) {
    return start(address, in);
  }

  private Frame start(long address, Deque<Transfer> queue) {
    Transfer transfer = spare.poll();
    if (transfer == null) {
      transfer = new Transfer();
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
    for (Transfer next = out.peek(); next != null; next = out.peek()) {
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

  private boolean put(Transfer transfer) {
    long before = transfer.moved();
    Frame frame = transfer.frame();
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
      transfer.move(link.put(frame.wholeSumAddress() + at, Frame.SUM_BYTES - at));
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
    for (Transfer next = in.peek(); next != null; next = in.peek()) {
      moved |= take(next);
      if (!next.isDone()) {
        break;
      }
      spare.add(in.remove());
    }
    return moved;
  }

  private boolean take(Transfer transfer) {
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
      transfer.move(link.take(arrived.wholeSumAddress() + at, Frame.SUM_BYTES - at));
      if (transfer.isDone() && inSum.value() != arrived.wholeSum()) {
        spoiled = damaged(transfer.frame(), "it", inSum.value(), arrived.wholeSum());
        throw spoiled;
      }
    }
    return transfer.moved() != before;
  }

  /** Checks a complete header. */
  private void check(Frame expected) {
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
  private CollectiveException damaged(Frame expected, String what, int found, int promised) {
    return new CollectiveException(
        Kind.IO,
        List.of(peer),
        "message #%s of rank %d was damaged on its way to rank %d: %s has CRC32C %08x, expected %08x"
            .formatted(describe(expected), peer, me, what, found, promised));
  }

  private CollectiveException mismatch(Frame expected) {
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
    return Disagreement.between(
        me,
        expected.signature(),
        expected.sequence(),
        peer,
        arrived.signature(),
        arrived.sequence());
  }

  private static String describe(Frame frame) {
    return frame.sequence() + ": " + frame.signature() + " in " + frame.bytes() + " bytes";
  }
}
