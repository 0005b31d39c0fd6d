package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Operation;
import io.weft.collectives.Operation.Signature;
import io.weft.collectives.Receive;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.collectives.host.MessageChannel.ByteLink;
import io.weft.collectives.host.MessageChannel.InFlightMessage;
import io.weft.memory.Memory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.IntSupplier;

/**
 * Messages between pairs of ranks over one kind of link. Any number may be in flight at once; those
 * with one peer in one direction keep their order. Only {@link #finish} and the await methods
 * block. One thread at a time.
 */
final class PointToPoint {
  /** Opens the link to a rank; called once for each. */
  interface LinkSource {
    ByteLink open(int peer);
  }

  private static final int QUICK_ROUNDS = 16;

  private final int me;
  private final LinkSource source;
  private final WaitLoop waiting;
  private final Channel[] channels;
  private final Deque<InFlightMessage> spare = new ArrayDeque<>();
  private final List<Channel> active = new ArrayList<>();

  /** One peer; listed while a message is in flight. */
  private static final class Channel {
    private final MessageChannel messages;
    private boolean listed;

    private Channel(MessageChannel messages) {
      this.messages = messages;
    }
  }

  PointToPoint(int me, int nranks, LinkSource source, WaitLoop waiting) {
    this.me = me;
    this.source = source;
    this.waiting = waiting;
    this.channels = new Channel[nranks];
  }

  private MessageChannel channel(int peer) {
    Channel channel = channels[peer];
    if (channel == null) {
      channel = new Channel(new MessageChannel(me, peer, source.open(peer), spare));
      channels[peer] = channel;
    }
    if (!channel.listed) {
      channel.listed = true;
      active.add(channel);
    }
    return channel.messages;
  }

  /**
   * Starts sending a message of the current operation.
   *
   * @param step distinguishes it from other messages of the same call to the same peer
   */
  void send(Call call, int step, int peer, long address, long bytes) {
    channel(peer).send(address).write(call.signature(), call.sequence(), call.phase(), step, bytes);
  }

  /** Starts receiving the message that the peer sends with the same call and step. */
  void receive(Call call, int step, int peer, long address, long bytes) {
    channel(peer)
        .receive(address)
        .write(call.signature(), call.sequence(), call.phase(), step, bytes);
  }

  /** Starts sending a message of a user's send. */
  void send(Signature signature, long number, int peer, long address, long bytes) {
    channel(peer).send(address).write(signature, number, 0, 0, bytes);
  }

  /**
   * Starts receiving a message of a user's send.
   *
   * @param signature that of the matching send
   */
  void receive(Signature signature, long number, int peer, long address, long bytes) {
    channel(peer).receive(address).write(signature, number, 0, 0, bytes);
  }

  /** Whether no message is in flight. */
  boolean isDone() {
    return active.isEmpty();
  }

  /** Moves the bytes that can move now; returns whether any did. */
  boolean progress() {
    boolean moved = false;
    for (int i = active.size() - 1; i >= 0; i--) {
      Channel channel = active.get(i);
      moved |= channel.messages.progressOut();
      moved |= channel.messages.progressIn();
      if (channel.messages.isIdle()) {
        channel.listed = false;
        active.remove(i);
      }
    }
    return moved;
  }

  /** Waits until all started messages have been sent and received. */
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

  /**
   * Waits until at most this many messages are still to come from a peer; other messages progress
   * too.
   */
  void awaitReceives(int peer, int left) {
    MessageChannel channel = channel(peer);
    await(channel::receiving, left);
  }

  /**
   * Waits until at most this many messages to a peer have bytes left to send; other messages
   * progress too.
   */
  void awaitSends(int peer, int left) {
    MessageChannel channel = channel(peer);
    await(channel::sending, left);
  }

  private void await(IntSupplier underWay, int left) {
    if (underWay.getAsInt() <= left) {
      return;
    }
    waiting.begin();
    while (underWay.getAsInt() > left) {
      if (progress()) {
        waiting.moved(this::awaited);
      } else {
        waiting.idle(this::awaited);
      }
    }
    waiting.end();
  }

  /** Messages that finish almost at once need no wait with its clock reads. */
  private boolean progressQuickly() {
    for (int i = 0; i < QUICK_ROUNDS && !isDone(); i++) {
      if (!progress()) {
        return false;
      }
    }
    return isDone();
  }

  /**
   * The ranks that a message is expected from or, if there are none, the ranks that do not take
   * theirs. It first takes arrived bytes: a peer that has ended may have done its part already.
   */
  List<Integer> awaited() {
    boolean unused = progress();
    List<Integer> from = ranksWith(true);
    return from.isEmpty() ? ranksWith(false) : from;
  }

  private List<Integer> ranksWith(boolean incoming) {
    return active.stream()
        .map(channel -> channel.messages)
        .filter(messages -> !incoming || messages.receiving() > 0)
        .map(MessageChannel::peer)
        .sorted()
        .toList();
  }

  /**
   * Ranks of a communicator that do a part of an operation together, numbered from 0, and the
   * messages between them. One thread at a time.
   */
  static final class RankGroup {
    private final int me;
    private final int[] ranks;
    private final PointToPoint pairs;

    /**
     * Creates a set of ranks.
     *
     * @param rank this one, of the communicator
     * @param ranks all of the set, in the order of their numbers
     */
    RankGroup(int rank, List<Integer> ranks, PointToPoint pairs) {
      this.me = ranks.indexOf(rank);
      this.ranks = ranks.stream().mapToInt(Integer::intValue).toArray();
      this.pairs = pairs;
    }

    /** The number of this rank; negative if it is not in the set. */
    int me() {
      return me;
    }

    int size() {
      return ranks.length;
    }

    /** The member at this distance after this one, modulo the number of members. */
    int at(int distance) {
      return Math.floorMod(me + distance, ranks.length);
    }

    /** See {@link PointToPoint#send(Call, int, int, long, long)}. */
    void send(Call call, int step, int member, long address, long bytes) {
      pairs.send(call, step, ranks[member], address, bytes);
    }

    /** See {@link PointToPoint#receive(Call, int, int, long, long)}. */
    void receive(Call call, int step, int member, long address, long bytes) {
      pairs.receive(call, step, ranks[member], address, bytes);
    }

    void awaitReceives(int member, int left) {
      pairs.awaitReceives(ranks[member], left);
    }

    void awaitSends(int member, int left) {
      pairs.awaitSends(ranks[member], left);
    }

    /** Waits until all started messages have been sent and received. */
    void finish() {
      pairs.finish();
    }
  }

  /**
   * The sends and receives of users. Messages of a pair are numbered in each direction, so that a
   * lost or swapped message is detected. One thread at a time.
   */
  static final class PairMessages {
    private final int me;
    private final PointToPoint pairs;
    private final SelfMessages self;
    private final long[] sent;
    private final long[] received;

    PairMessages(int me, int nranks, PointToPoint pairs) {
      this.me = me;
      this.pairs = pairs;
      this.self = new SelfMessages(me);
      this.sent = new long[nranks];
      this.received = new long[nranks];
    }

    /** Starts a send or receive; ignores other operations. */
    void start(Operation operation) {
      if (operation instanceof Send send) {
        start(send);
      } else if (operation instanceof Receive receive) {
        start(receive);
      }
    }

    private void start(Send send) {
      int peer = send.peer();
      if (peer == me) {
        self.send(send.buffer());
        return;
      }
      long number = sent[peer]++;
      pairs.send(send.signature(), number, peer, send.buffer().address(), send.buffer().bytes());
    }

    private void start(Receive receive) {
      int peer = receive.peer();
      if (peer == me) {
        self.receive(receive.buffer());
        return;
      }
      Signature expected = new Send(receive.buffer(), me).signature();
      long number = received[peer]++;
      pairs.receive(expected, number, peer, receive.buffer().address(), receive.buffer().bytes());
    }

    /** Moves the bytes that can move without waiting. */
    void progress() {
      boolean unused = pairs.progress();
    }

    /** Waits until all started messages are done. */
    void finish() {
      self.deliver();
      pairs.finish();
    }

    /**
     * The messages of a rank to itself within a group: the n-th send matches the n-th receive. One
     * thread.
     */
    static final class SelfMessages {
      private final int me;
      private final Deque<TypedBuffer> sends = new ArrayDeque<>();
      private final Deque<TypedBuffer> receives = new ArrayDeque<>();

      SelfMessages(int me) {
        this.me = me;
      }

      void send(TypedBuffer buffer) {
        sends.add(buffer);
      }

      void receive(TypedBuffer buffer) {
        receives.add(buffer);
      }

      /**
       * Copies all messages.
       *
       * @throws CollectiveException of kind INVALID when one has no match; nothing is kept then
       */
      void deliver() {
        try {
          while (!sends.isEmpty() || !receives.isEmpty()) {
            deliver(sends.poll(), receives.poll());
          }
        } finally {
          sends.clear();
          receives.clear();
        }
      }

      private void deliver(TypedBuffer send, TypedBuffer receive) {
        if (send == null || receive == null) {
          throw CollectiveException.invalid(
              "rank "
                  + me
                  + (send == null ? " receives from itself" : " sends to itself")
                  + " without the counterpart in the same group");
        }
        if (send.type() != receive.type() || send.count() != receive.count()) {
          throw CollectiveException.invalid(
              "rank " + me + " sends itself " + send + " but receives " + receive);
        }
        Memory.copy(send.address(), receive.address(), send.bytes());
      }
    }
  }
}
