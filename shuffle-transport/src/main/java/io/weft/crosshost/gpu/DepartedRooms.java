package io.weft.crosshost.gpu;

import io.weft.device.Deadline;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Rooms that this end has left and the other may still have mapped. They are looked at again
 * whenever a room is opened or left. Thread-safe; no lock is held while the driver is asked.
 */
final class DepartedRooms {
  private static final long POLL_NANOS = 1_000_000;

  private final List<SharedRoom> rooms = new ArrayList<>();

  /** Rooms that somebody looks at. */
  private int inHand;

  /** Takes a room over. */
  void add(SharedRoom room) {
    synchronized (this) {
      rooms.add(room);
    }
    int unused = look();
  }

  /** Gives back what nobody has mapped any more; returns how many rooms are left. */
  int look() {
    List<SharedRoom> looked;
    synchronized (this) {
      looked = new ArrayList<>(rooms);
      rooms.clear();
      inHand += looked.size();
    }
    int taken = looked.size();
    looked.removeIf(SharedRoom::tryRelease);
    synchronized (this) {
      inHand -= taken;
      rooms.addAll(looked);
      return rooms.size() + inHand;
    }
  }

  /** Looks until none is left, or the deadline is over; returns how many are. */
  int awaitAll(Deadline deadline) {
    int left = look();
    while (left > 0 && !deadline.expired()) {
      LockSupport.parkNanos(POLL_NANOS);
      left = look();
    }
    return left;
  }
}
