package io.weft.examples.trace;

import java.util.Arrays;
import java.util.Comparator;
import java.util.PriorityQueue;

/**
 * Rows of a timeline for events of one name that may overlap: no two events of a lane do. First all
 * events are added, then lanes are assigned, and then taken in the order of adding.
 */
final class Lanes {
  private final String name;
  private long[] starts = new long[16];
  private long[] ends = new long[16];
  private int[] lanes = new int[0];
  private int size;
  private int taken;
  private int count;

  /** A lane and the end of its last event. */
  private record Lane(int number, long end) {}

  /** Starts without events. */
  Lanes(String name) {
    this.name = name;
  }

  /** Whether events of this name overlap on a thread, because they are waited for elsewhere. */
  static boolean need(String name) {
    return name.equals("Fetch") || name.equals("Transfer");
  }

  /** Adds an event. */
  void add(long start, long end) {
    if (size == starts.length) {
      starts = Arrays.copyOf(starts, 2 * size);
      ends = Arrays.copyOf(ends, 2 * size);
    }
    starts[size] = start;
    ends[size++] = end;
  }

  /** Adds all events of others, after these. */
  void addAll(Lanes others) {
    for (int i = 0; i < others.size; i++) {
      add(others.starts[i], others.ends[i]);
    }
  }

  /** Gives each event the first free lane. */
  void assign() {
    lanes = new int[size];
    PriorityQueue<Lane> busy = new PriorityQueue<>(Comparator.comparingLong(Lane::end));
    PriorityQueue<Integer> free = new PriorityQueue<>();
    for (int event : byStart()) {
      place(event, busy, free);
    }
    starts = new long[0];
    ends = new long[0];
  }

  /** The events in the order of their starts. Arrays, because a trace may have millions. */
  private int[] byStart() {
    long[] sorted = Arrays.copyOf(starts, size);
    Arrays.sort(sorted);
    int[] order = new int[size];
    Arrays.fill(order, -1);
    for (int event = 0; event < size; event++) {
      int place = first(sorted, starts[event]);
      while (order[place] >= 0) {
        place++;
      }
      order[place] = event;
    }
    return order;
  }

  /** The first place of a value that a sorted array has. */
  private static int first(long[] sorted, long value) {
    int low = 0;
    int high = sorted.length - 1;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (sorted[middle] < value) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  private void place(int event, PriorityQueue<Lane> busy, PriorityQueue<Integer> free) {
    while (!busy.isEmpty() && busy.peek().end() <= starts[event]) {
      free.add(busy.remove().number());
    }
    int lane = free.isEmpty() ? count++ : free.remove();
    lanes[event] = lane;
    busy.add(new Lane(lane, ends[event]));
  }

  /** The number of lanes. */
  int count() {
    return count;
  }

  /** The lane of the next event, from 0. */
  int next() {
    return lanes[taken++];
  }

  /** The thread id of a lane in traces; none of a real thread. */
  long id(int lane) {
    return (name.equals("Fetch") ? 1_000_000_000L : 2_000_000_000L) + lane;
  }

  /** The name of a lane for a reader. */
  String title(int lane) {
    return name + " " + (lane + 1);
  }
}
