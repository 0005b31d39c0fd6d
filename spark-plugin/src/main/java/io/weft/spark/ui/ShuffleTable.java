package io.weft.spark.ui;

import io.weft.shuffle.peer.TrafficReport.Figure;
import io.weft.shuffle.peer.TrafficReport.ShuffleTraffic;
import io.weft.spark.shuffle.ShuffleRoutes.RouteTaken;
import io.weft.spark.ui.TabRequest.Column;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

/**
 * The shuffles of an application. Keeps the last {@link #MAX_SHUFFLES}, about 500 bytes each.
 * Thread-safe.
 */
public final class ShuffleTable {
  /** Maximum number of shuffles. */
  public static final int MAX_SHUFFLES = 10_000;

  private final LinkedHashMap<Integer, Shuffle> shuffles = new LinkedHashMap<>();
  private final TreeSet<Integer> changed = new TreeSet<>();
  private long dropped;
  private int lastDropped = -1;

  /** The figures of one shuffle. */
  private static final class Shuffle {
    private final int id;
    private final SortedSet<Integer> writers = new TreeSet<>();
    private final SortedSet<Integer> readers = new TreeSet<>();
    private final long[] traffic = new long[Figure.COUNT];
    private String route = "";
    private String why = "";
    private boolean isRouted;
    private boolean isComplete;
    private int attempts;
    private long recomputed;

    /** Outputs that were missing when a stage ran again and has not succeeded yet. */
    private long missing;

    private long adopted;
    private int partitions;
    private long rows;
    private long batches;
    private long written;
    private long smallest = -1;
    private long median = -1;
    private long largest = -1;

    Shuffle(int id) {
      this.id = id;
    }

    private long get(Figure figure) {
      return traffic[figure.index()];
    }

    int compareTo(Shuffle other, Column sort) {
      int order =
          sort == Column.ROUTE
              ? route.compareTo(other.route)
              : Long.compare(key(sort), other.key(sort));
      return order != 0 ? order : Integer.compare(id, other.id);
    }

    /** The number that a column shows; the id if it shows a text. */
    private long key(Column column) {
      return switch (column) {
        case ID, ROUTE -> id;
        case ATTEMPTS -> attempts;
        case RECOMPUTED -> recomputed;
        case ADOPTED -> adopted;
        case ROWS -> rows;
        case BATCHES -> batches;
        case WRITTEN -> written;
        case OWN -> get(Figure.OWN);
        case SAMEHOST -> get(Figure.SAME_HOST);
        case NETWORK -> get(Figure.NETWORK);
        case GPU -> get(Figure.GPU);
        case DISK -> get(Figure.ON_DISK);
        case WAIT -> waitMillis();
        case LARGEST -> largest;
      };
    }

    /** A row has milliseconds, so the history server knows no more. */
    private long waitMillis() {
      return TimeUnit.NANOSECONDS.toMillis(get(Figure.WAIT_NANOS));
    }

    ShuffleRow row() {
      return new ShuffleRow(
          id,
          route,
          why,
          List.copyOf(writers),
          List.copyOf(readers),
          attempts,
          recomputed,
          adopted,
          partitions,
          rows,
          batches,
          written,
          get(Figure.ON_DISK),
          get(Figure.OWN),
          get(Figure.SAME_HOST),
          get(Figure.NETWORK),
          get(Figure.GPU),
          waitMillis(),
          smallest,
          median,
          largest);
    }

    void set(ShuffleRow row) {
      route = row.route();
      why = row.why();
      writers.addAll(row.writers());
      readers.addAll(row.readers());
      attempts = row.attempts();
      recomputed = row.recomputed();
      adopted = row.adopted();
      partitions = row.partitions();
      rows = row.rows();
      batches = row.batches();
      written = row.written();
      set(Figure.ON_DISK, row.onDisk());
      set(Figure.OWN, row.own());
      set(Figure.SAME_HOST, row.sameHost());
      set(Figure.NETWORK, row.network());
      set(Figure.GPU, row.gpu());
      set(Figure.WAIT_NANOS, TimeUnit.MILLISECONDS.toNanos(row.waitMillis()));
      smallest = row.smallest();
      median = row.median();
      largest = row.largest();
    }

    private void set(Figure figure, long value) {
      traffic[figure.index()] = value;
    }
  }

  /**
   * A part of the sorted table.
   *
   * @param rows of this page
   * @param total number of shuffles in the table
   */
  public record ShufflePage(List<ShuffleRow> rows, int total) {}

  /** Records the route of a shuffle. */
  public synchronized void routed(int id, RouteTaken route) {
    Shuffle shuffle = at(id);
    shuffle.route = route.name();
    shuffle.why = route.why();
    shuffle.partitions = route.partitions();
    shuffle.isRouted = true;
  }

  /** The reduce partitions of a shuffle; 0 if they are not known. */
  public synchronized int partitions(int id) {
    Shuffle shuffle = shuffles.get(id);
    return shuffle == null ? 0 : shuffle.partitions;
  }

  /** Whether the route of a shuffle was recorded. */
  public synchronized boolean isRouted(int id) {
    Shuffle shuffle = shuffles.get(id);
    return shuffle != null && shuffle.isRouted;
  }

  /** Number of shuffles so far, also of those that are no longer in the table. */
  public synchronized long total() {
    return dropped + shuffles.size();
  }

  /**
   * An attempt of a stage that wrote a shuffle, after its end.
   *
   * @param succeeded whether all map outputs are there now
   * @param outputs map outputs that were missing before it
   * @param batches that all attempts so far wrote, without failed tasks; 0 if they wrote none
   */
  public record StageAttempt(
      int stage, boolean succeeded, long outputs, long rows, long batches, long bytes) {}

  /** Records an attempt of a stage that wrote a shuffle. */
  public synchronized void wrote(int id, StageAttempt attempt) {
    Shuffle shuffle = at(id);
    add(shuffle.writers, attempt.stage());
    shuffle.attempts++;
    shuffle.rows += attempt.rows();
    shuffle.batches = Math.max(shuffle.batches, attempt.batches());
    shuffle.written += attempt.bytes();
    if (shuffle.isComplete) {
      shuffle.missing = attempt.outputs();
    }
    shuffle.isComplete = attempt.succeeded();
    if (attempt.succeeded()) {
      shuffle.recomputed += shuffle.missing;
      shuffle.missing = 0;
    }
  }

  /** Records that an executor adopted map outputs of a dead one. */
  public synchronized void adopted(int id, long outputs) {
    if (shuffles.containsKey(id)) {
      at(id).adopted += outputs;
    }
  }

  /** Records a stage that reads a shuffle. */
  public synchronized void read(int id, int stage) {
    if (shuffles.containsKey(id)) {
      add(at(id).readers, stage);
    }
  }

  private static void add(SortedSet<Integer> stages, int stage) {
    if (stages.size() < ShuffleRow.MAX_STAGES) {
      stages.add(stage);
    }
  }

  /**
   * Records the sizes of all partitions, as reported to Spark.
   *
   * @param bytes by partition; is sorted
   */
  public synchronized void sized(int id, long[] bytes) {
    Arrays.sort(bytes);
    Shuffle shuffle = at(id);
    if (bytes.length > 0) {
      shuffle.smallest = bytes[0];
      shuffle.median = bytes[bytes.length / 2];
      shuffle.largest = bytes[bytes.length - 1];
    }
  }

  /** Adds what an executor wrote and read, unless the shuffle is too old for the table. */
  public synchronized void add(ShuffleTraffic traffic) {
    if (traffic.shuffleId() <= lastDropped && !shuffles.containsKey(traffic.shuffleId())) {
      return;
    }
    Shuffle shuffle = at(traffic.shuffleId());
    for (Figure figure : Figure.values()) {
      shuffle.traffic[figure.index()] += traffic.get(figure);
    }
  }

  /** Replaces the figures of a shuffle. */
  public synchronized void set(ShuffleRow row) {
    at(row.id()).set(row);
  }

  /** Returns a shuffle that is about to change. */
  private Shuffle at(int id) {
    Shuffle shuffle = shuffles.computeIfAbsent(id, Shuffle::new);
    changed.add(id);
    if (shuffles.size() > MAX_SHUFFLES) {
      int oldest = shuffles.keySet().iterator().next();
      shuffles.remove(oldest);
      changed.remove(oldest);
      dropped++;
      lastDropped = Math.max(lastDropped, oldest);
    }
    return shuffle;
  }

  /** Returns the shuffles that have changed since the last call. */
  synchronized List<ShuffleRow> takeChanged() {
    List<ShuffleRow> rows = new ArrayList<>(changed.size());
    changed.forEach(id -> rows.add(shuffles.get(id).row()));
    changed.clear();
    return rows;
  }

  /**
   * Returns a page of the sorted table. Shuffles that are equal in the column are in the order of
   * their numbers, which is descending if the table is. Makes only the rows of the page.
   *
   * @param from number of rows before the page
   * @param count maximum number of rows
   */
  synchronized ShufflePage page(Column sort, boolean descending, long from, int count) {
    Shuffle[] all = shuffles.values().toArray(new Shuffle[0]);
    Arrays.sort(all, (a, b) -> descending ? b.compareTo(a, sort) : a.compareTo(b, sort));
    List<ShuffleRow> rows = new ArrayList<>();
    for (long i = from; i < Math.min(from + count, all.length); i++) {
      rows.add(all[(int) i].row());
    }
    return new ShufflePage(rows, all.length);
  }

  /** Returns all rows, the oldest shuffle first. */
  synchronized List<ShuffleRow> rows() {
    return shuffles.values().stream().map(Shuffle::row).toList();
  }
}
