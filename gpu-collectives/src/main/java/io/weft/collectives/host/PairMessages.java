package io.weft.collectives.host;

import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.Receive;
import io.weft.collectives.operation.Send;
import io.weft.collectives.operation.Signature;

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
}
