package io.weft.tcp;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The outstanding requests of a connection. Thread-safe. */
final class Turns {
  private final Set<Turn> open = ConcurrentHashMap.newKeySet();
  private volatile long lastMoved = System.nanoTime();

  void begin(Turn turn) {
    open.add(turn);
  }

  /** Records progress of a request. */
  void moved(Turn turn) {
    long now = System.nanoTime();
    lastMoved = now;
    open.forEach(each -> each.moved(turn, now));
  }

  /** Ends a request. */
  void end(Turn turn) {
    open.remove(turn);
  }

  /** The time of the last progress of any request, or of creation. */
  long lastMoved() {
    return lastMoved;
  }
}
