package io.weft.collectives.host;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.operation.Signature;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * Messages between pairs of ranks over one kind of link. Any number are under way at once; those
 * with one peer in one direction keep their order. Nothing blocks but {@link #finish}.
 *
 * <p>Every message is preceded by a {@link Frame}, and the receiver knows beforehand what it has to
 * say. One thread at a time.
 */
final class PointToPoint {
  /** Gives the link to a rank; asked once for each. */
  interface LinkSource {
    Link open(int peer);
  }

  private static final int QUICK_ROUNDS = 16;

  private final int me;
  private final LinkSource source;
  private final Waiting waiting;
  private final Channel[] channels;
  private final Deque<Transfer> spare = new ArrayDeque<>();
  private final List<Channel> active = new ArrayList<>();

  /** One peer. */
  private static final class Channel {
    private final int peer;
    private final Link link;
    private final Deque<Transfer> out = new ArrayDeque<>();
    private final Deque<Transfer> in = new ArrayDeque<>();
    private final Frame arrived = new Frame();
    private boolean pushed = true;
    private boolean listed;

    private Channel(int peer, Link link) {
      this.peer = peer;
      this.link = link;
    }

    private boolean isIdle() {
      return out.isEmpty() && in.isEmpty() && pushed;
    }
  }

  PointToPoint(int me, int nranks, LinkSource source, Waiting waiting) {
    this.me = me;
    this.source = source;
    this.waiting = waiting;
    this.channels = new Channel[nranks];
  }

  private Channel channel(int peer) {
    Channel channel = channels[peer];
    if (channel == null) {
      channel = new Channel(peer, source.open(peer));
      channels[peer] = channel;
    }
    if (!channel.listed) {
      channel.listed = true;
      active.add(channel);
    }
    return channel;
  }

  /**
   * Starts sending a message of the operation that runs.
   *
   * @param step what distinguishes it from others of the same call to the same peer
   */
  void send(Call call, int step, int peer, long address, long bytes) {
    Transfer transfer = transfer(address);
    transfer.frame().write(call.signature(), call.sequence(), call.phase(), step, bytes);
    channel(peer).out.add(transfer);
  }

  /** Starts receiving the message that the peer sends with the same call and step. */
  void receive(Call call, int step, int peer, long address, long bytes) {
    Transfer transfer = transfer(address);
    transfer.frame().write(call.signature(), call.sequence(), call.phase(), step, bytes);
    channel(peer).in.add(transfer);
  }

  /** Starts sending a message of a pair. */
  void send(Signature signature, long number, int peer, long address, long bytes) {
    Transfer transfer = transfer(address);
    transfer.frame().write(signature, number, 0, 0, bytes);
    channel(peer).out.add(transfer);
  }

  /**
   * Starts receiving a message of a pair.
   *
   * @param signature that of the matching send
   */
  void receive(Signature signature, long number, int peer, long address, long bytes) {
    Transfer transfer = transfer(address);
    transfer.frame().write(signature, number, 0, 0, bytes);
    channel(peer).in.add(transfer);
  }

  private Transfer transfer(long address) {
    Transfer transfer = spare.poll();
    if (transfer == null) {
      transfer = new Transfer();
    }
    transfer.start(address);
    return transfer;
  }

  /** Whether nothing is under way. */
  boolean isDone() {
    return active.isEmpty();
  }

  /** Moves what can be moved now; returns whether anything did. */
  boolean progress() {
    boolean moved = false;
    for (int i = active.size() - 1; i >= 0; i--) {
      Channel channel = active.get(i);
      moved |= progressOut(channel);
      moved |= progressIn(channel);
      if (channel.isIdle()) {
        channel.listed = false;
        active.remove(i);
      }
    }
    return moved;
  }

  private boolean progressOut(Channel channel) {
    boolean moved = false;
    for (Transfer next = channel.out.peek(); next != null; next = channel.out.peek()) {
      moved |= put(channel, next);
      if (!next.isDone()) {
        break;
      }
      spare.add(channel.out.remove());
    }
    if (moved || !channel.pushed) {
      channel.pushed = channel.link.push();
      moved |= channel.pushed;
    }
    return moved;
  }

  private static boolean put(Channel channel, Transfer transfer) {
    long before = transfer.left();
    if (transfer.inHeader()) {
      long at = transfer.headerMoved();
      transfer.move(channel.link.put(transfer.frame().address() + at, Frame.BYTES - at));
    }
    if (!transfer.inHeader() && !transfer.isDone()) {
      transfer.move(channel.link.put(transfer.next(), transfer.left()));
    }
    return transfer.left() != before;
  }

  private boolean progressIn(Channel channel) {
    boolean moved = false;
    for (Transfer next = channel.in.peek(); next != null; next = channel.in.peek()) {
      moved |= take(channel, next);
      if (!next.isDone()) {
        break;
      }
      spare.add(channel.in.remove());
    }
    return moved;
  }

  private boolean take(Channel channel, Transfer transfer) {
    long before = transfer.left();
    if (transfer.inHeader()) {
      long at = transfer.headerMoved();
      transfer.move(channel.link.take(channel.arrived.address() + at, Frame.BYTES - at));
      if (!transfer.inHeader() && !channel.arrived.sameAs(transfer.frame())) {
        throw mismatch(channel, transfer.frame());
      }
    }
    if (!transfer.inHeader() && !transfer.isDone()) {
      transfer.move(channel.link.take(transfer.next(), transfer.left()));
    }
    return transfer.left() != before;
  }

  private CollectiveException mismatch(Channel channel, Frame expected) {
    Frame arrived = channel.arrived;
    if (!expected.signature().isCollective()) {
      return new CollectiveException(
          CollectiveException.Kind.MISMATCH,
          List.of(Math.min(me, channel.peer), Math.max(me, channel.peer)),
          "rank "
              + channel.peer
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
        channel.peer,
        arrived.signature(),
        arrived.sequence());
  }

  private static String describe(Frame frame) {
    return frame.sequence() + ": " + frame.signature() + " in " + frame.bytes() + " bytes";
  }

  /** Waits until everything under way has been sent and received. */
  void finish() {
    if (progressQuickly()) {
      return;
    }
    waiting.begin();
    while (!isDone()) {
      if (progress()) {
        waiting.moved(this::awaited);
      } else {
        waiting.idle(this::awaited);
      }
    }
    waiting.end();
  }

  /** Waits until at most so many messages are still to come from a peer; the others go on. */
  void awaitReceives(int peer, int left) {
    await(channel(peer).in, left);
  }

  /** Waits until at most so many messages to a peer still need their bytes; the others go on. */
  void awaitSends(int peer, int left) {
    await(channel(peer).out, left);
  }

  private void await(Deque<Transfer> transfers, int left) {
    if (transfers.size() <= left) {
      return;
    }
    waiting.begin();
    while (transfers.size() > left) {
      if (progress()) {
        waiting.moved(this::awaited);
      } else {
        waiting.idle(this::awaited);
      }
    }
    waiting.end();
  }

  /** What is as good as there needs no waiting with its clocks. */
  private boolean progressQuickly() {
    for (int i = 0; i < QUICK_ROUNDS && !isDone(); i++) {
      if (!progress()) {
        return false;
      }
    }
    return isDone();
  }

  /**
   * Ranks that a message is expected from, or, if there are none, that do not take theirs. What has
   * come meanwhile is taken first: whoever asks may find a peer gone that has done its part.
   */
  List<Integer> awaited() {
    boolean unused = progress();
    List<Integer> from = ranksWith(true);
    return from.isEmpty() ? ranksWith(false) : from;
  }

  private List<Integer> ranksWith(boolean incoming) {
    return active.stream()
        .filter(channel -> !incoming || !channel.in.isEmpty())
        .map(channel -> channel.peer)
        .sorted()
        .toList();
  }
}
