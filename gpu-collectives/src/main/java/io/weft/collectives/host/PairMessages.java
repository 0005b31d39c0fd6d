package io.weft.collectives.host;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Operation;
import io.weft.collectives.Receive;
import io.weft.collectives.Send;
import io.weft.collectives.Signature;
import io.weft.collectives.TypedBuffer;
import io.weft.memory.Memory;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The sends and receives of users. Messages of a pair are numbered in each direction, so that a
 * lost or swapped message is detected. One thread at a time.
 */
final class PairMessages {
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
