package io.weft.crosshost;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Predicate;

/**
 * The transfers of a clique that were not offered to the peer. Sends keep their order, and so do
 * receives. A send whose source is not ready delays the sends behind it, but no receive.
 * Thread-safe.
 */
final class TransferQueue {
  private final Deque<PreparedTransfer> sends = new ArrayDeque<>();
  private final Deque<PreparedTransfer> receives = new ArrayDeque<>();

  /** Adds transfers of one batch at once, so that they are offered together. */
  synchronized void add(List<PreparedTransfer> transfers) {
    transfers.forEach(transfer -> (transfer.sends() ? sends : receives).add(transfer));
  }

  synchronized boolean hasReady(Predicate<PreparedTransfer> readiness) {
    return isReady(sends, readiness) || isReady(receives, readiness);
  }

  private static boolean isReady(
      Deque<PreparedTransfer> transfers, Predicate<PreparedTransfer> readiness) {
    return !transfers.isEmpty() && readiness.test(transfers.peek());
  }

  /**
   * Takes out ready transfers, in order, until the taker refuses one. The taker runs under the
   * queue's lock and must not end a transfer, because a listener of its end may call this queue.
   */
  synchronized void takeReady(
      Predicate<PreparedTransfer> readiness, Predicate<PreparedTransfer> taker) {
    take(receives, readiness, taker);
    take(sends, readiness, taker);
  }

  private static void take(
      Deque<PreparedTransfer> from,
      Predicate<PreparedTransfer> readiness,
      Predicate<PreparedTransfer> taker) {
    while (isReady(from, readiness) && taker.test(from.peek())) {
      from.remove();
    }
  }

  /** Takes out all ready transfers. */
  synchronized List<PreparedTransfer> takeReady(Predicate<PreparedTransfer> readiness) {
    List<PreparedTransfer> ready = new ArrayList<>();
    takeReady(readiness, ready::add);
    return ready;
  }

  /** Takes out all transfers. */
  synchronized List<PreparedTransfer> clear() {
    List<PreparedTransfer> all = new ArrayList<>(sends);
    all.addAll(receives);
    sends.clear();
    receives.clear();
    return all;
  }

  /** All queued transfers. */
  synchronized List<PreparedTransfer> all() {
    List<PreparedTransfer> all = new ArrayList<>(sends);
    all.addAll(receives);
    return all;
  }
}
