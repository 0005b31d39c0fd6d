package io.weft.tcp;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What a connection was asked for and has not brought to its end. Thread-safe. */
final class Turns {
  private final Set<Turn> open = ConcurrentHashMap.newKeySet();
  private volatile long lastMoved = System.nanoTime();

  void begin(Turn turn) {
    open.add(turn);
  }

  /** Something came that was asked for at this turn. */
  void moved(Turn turn) {
    long now = System.nanoTime();
    lastMoved = now;
    open.forEach(each -> each.moved(turn, now));
  }

  /** Nothing more comes at this turn. */
  void end(Turn turn) {
    open.remove(turn);
  }

  /** When something came last, or this was made. */
  long lastMoved() {
    return lastMoved;
  }
}
