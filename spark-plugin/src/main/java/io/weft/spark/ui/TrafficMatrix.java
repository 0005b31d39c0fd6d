package io.weft.spark.ui;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.UnaryOperator;

/**
 * Bytes that executors read from each other. With more than {@link #MAX_GROUPS} executors, they are
 * added up by host; further hosts share one group. Thread-safe.
 */
final class TrafficMatrix {
  /** Maximum number of executors, or of hosts, that are shown one by one. */
  static final int MAX_GROUPS = 64;

  /** The group of hosts beyond that number. */
  static final String OTHERS = "other hosts";

  private final UnaryOperator<String> hosts;
  private Map<String, Integer> groups = new TreeMap<>();
  private long[][] bytes = new long[0][0];
  private boolean byHost;
  private boolean changed;

  /**
   * Starts empty.
   *
   * @param hosts returns the host of an executor
   */
  TrafficMatrix(UnaryOperator<String> hosts) {
    this.hosts = hosts;
  }

  /**
   * The matrix at one time.
   *
   * @param byHost whether the names are hosts instead of executors
   * @param names of the groups
   * @param bytes read by a group (first index) from a group (second index), in the order of names
   */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Snapshot(boolean byHost, List<String> names, List<List<Long>> bytes) {
    /** A matrix without executors. */
    static final Snapshot EMPTY = new Snapshot(false, List.of(), List.of());

    public Snapshot {
      names = names == null ? List.of() : List.copyOf(names);
      bytes = bytes == null ? List.of() : bytes.stream().map(List::copyOf).toList();
    }
  }

  /**
   * Adds bytes that an executor read.
   *
   * @param sourcesAreHosts whether the sources are hosts, where an empty name is the reader's own
   */
  synchronized void add(
      String reader, String readerHost, boolean sourcesAreHosts, Map<String, Long> sources) {
    if (sources.isEmpty()) {
      return;
    }
    if (sourcesAreHosts || isFull(reader, sources.keySet())) {
      groupByHost();
    }
    changed = true;
    sources.forEach(
        (source, amount) -> {
          String from = source;
          if (byHost && sourcesAreHosts) {
            from = source.isEmpty() ? readerHost : source;
          } else if (byHost) {
            from = source.equals(reader) ? readerHost : hosts.apply(source);
          }
          add(byHost ? readerHost : reader, from, amount);
        });
  }

  private boolean isFull(String reader, Set<String> sources) {
    long more = sources.stream().filter(source -> !groups.containsKey(source)).count();
    boolean unknown = !groups.containsKey(reader) && !sources.contains(reader);
    return groups.size() + more + (unknown ? 1 : 0) > MAX_GROUPS;
  }

  private void groupByHost() {
    if (byHost) {
      return;
    }
    byHost = true;
    Map<String, Integer> executors = groups;
    long[][] before = bytes;
    groups = new TreeMap<>();
    bytes = new long[0][0];
    executors.forEach(
        (reader, row) ->
            executors.forEach(
                (source, column) ->
                    add(hosts.apply(reader), hosts.apply(source), before[row][column])));
  }

  private void add(String reader, String source, long amount) {
    int row = group(reader);
    int column = group(source);
    bytes[row][column] += amount;
  }

  private int group(String name) {
    Integer known = groups.get(name);
    if (known != null) {
      return known;
    }
    if (groups.size() >= MAX_GROUPS && !name.equals(OTHERS)) {
      return group(OTHERS);
    }
    int size = groups.size() + 1;
    bytes = Arrays.copyOf(bytes, size);
    for (int i = 0; i < size; i++) {
      bytes[i] = bytes[i] == null ? new long[size] : Arrays.copyOf(bytes[i], size);
    }
    groups.put(name, size - 1);
    return size - 1;
  }

  /** Replaces all figures. */
  synchronized void set(Snapshot snapshot) {
    List<String> names = snapshot.names();
    Map<String, Integer> rows = new TreeMap<>();
    long[][] figures = new long[names.size()][];
    for (int row = 0; row < names.size(); row++) {
      rows.put(names.get(row), row);
      figures[row] = snapshot.bytes().get(row).stream().mapToLong(Long::longValue).toArray();
    }
    byHost = snapshot.byHost();
    groups = rows;
    bytes = figures;
  }

  /** Returns the figures, in the order of names; numbers are in numeric order. */
  synchronized Snapshot snapshot() {
    List<String> names = new ArrayList<>(groups.keySet());
    names.sort(Texts.NUMBERS_FIRST);
    int[] places = names.stream().mapToInt(groups::get).toArray();
    List<List<Long>> rows = new ArrayList<>();
    for (int reader : places) {
      long[] row = bytes[reader];
      rows.add(Arrays.stream(places).mapToObj(source -> row[source]).toList());
    }
    return new Snapshot(byHost, names, rows);
  }

  /** Whether figures have changed since the last call. */
  synchronized boolean takeChanged() {
    boolean was = changed;
    changed = false;
    return was;
  }
}
