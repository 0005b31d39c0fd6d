package io.weft.crosshost.gpu;

import io.weft.device.Deadline;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Shared rooms that this end has left and the other end may still have mapped. They are polled when
 * a room is opened or left. Thread-safe; no lock is held during calls to the driver.
 */
final class DepartedRooms {
  private static final long POLL_NANOS = 1_000_000;

  private final List<SharedRoom> rooms = new ArrayList<>();

  /** The number of rooms that a thread polls now. */
  private int inHand;

  /** Adds a room and takes ownership. */
  void add(SharedRoom room) {
    synchronized (this) {
      rooms.add(room);
    }
    int unused = poll();
  }

  /** Frees the rooms that are not mapped any more. Returns the number of remaining rooms. */
  int poll() {
    List<SharedRoom> polled;
    synchronized (this) {
      polled = new ArrayList<>(rooms);
      rooms.clear();
      inHand += polled.size();
    }
    int taken = polled.size();
    polled.removeIf(SharedRoom::tryRelease);
    synchronized (this) {
      inHand -= taken;
      rooms.addAll(polled);
      return rooms.size() + inHand;
    }
  }

  /** Polls until no room remains or the deadline expires. Returns the number of remaining rooms. */
  int awaitAll(Deadline deadline) {
    int left = poll();
    while (left > 0 && !deadline.expired()) {
      LockSupport.parkNanos(POLL_NANOS);
      left = poll();
    }
    return left;
  }
}
