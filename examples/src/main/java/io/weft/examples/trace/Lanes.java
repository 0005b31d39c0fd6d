package io.weft.examples.trace;

import java.util.Arrays;
import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.stream.IntStream;

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
    IntStream.range(0, size)
        .boxed()
        .sorted(Comparator.comparingLong(i -> starts[i]))
        .forEach(i -> place(i, busy, free));
    starts = new long[0];
    ends = new long[0];
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
