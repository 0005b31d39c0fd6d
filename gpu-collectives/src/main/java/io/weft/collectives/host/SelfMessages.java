package io.weft.collectives.host;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.memory.Memory;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * The messages of a rank to itself within a group: the n-th send matches the n-th receive. One
 * thread.
 */
final class SelfMessages {
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
