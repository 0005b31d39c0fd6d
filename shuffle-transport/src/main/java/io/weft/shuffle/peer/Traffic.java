package io.weft.shuffle.peer;

import io.weft.shuffle.peer.TrafficReport.Figure;
import io.weft.shuffle.peer.TrafficReport.ShuffleTraffic;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What an executor wrote and read, by shuffle, and which executors it read from. It holds only what
 * was not reported yet: {@link #take()} removes it. Without reports, the oldest figures go.
 *
 * <p>Thread-safe. Readers add once for each shuffle, not for each block.
 */
public final class Traffic {
  /** Maximum number of shuffles, and of executors, with figures that were not reported. */
  static final int MAX_PENDING = 4096;

  /** Executors in a report, above which their bytes are added up by host. */
  static final int MAX_EXECUTORS = 64;

  private final Map<Integer, long[]> shuffles = bounded();
  private final Map<String, Source> sources = bounded();

  /** Bytes read from an executor. */
  private static final class Source {
    private final String host;
    private long bytes;

    Source(String host) {
      this.host = host;
    }
  }

  private static <K, V> Map<K, V> bounded() {
    return new LinkedHashMap<>() {
      private static final long serialVersionUID = 1L;

      @Override
      protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
        return size() > MAX_PENDING;
      }
    };
  }

  /** Adds to a figure of a shuffle. */
  public synchronized void add(int shuffleId, Figure figure, long amount) {
    if (amount != 0) {
      shuffles.computeIfAbsent(shuffleId, id -> new long[Figure.COUNT])[figure.index()] += amount;
    }
  }

  /**
   * Adds bytes that were read from an executor, also from this one.
   *
   * @param host of the executor; empty for this one
   */
  public synchronized void read(String executorId, String host, long bytes) {
    if (bytes != 0) {
      sources.computeIfAbsent(executorId, id -> new Source(host)).bytes += bytes;
    }
  }

  /** Whether there are figures to report. */
  public synchronized boolean isPending() {
    return !shuffles.isEmpty() || !sources.isEmpty();
  }

  /**
   * Removes and returns figures, at most {@link TrafficReport#MAX_ENTRIES} of each kind. Those of
   * more than 64 executors are added up by host.
   */
  public synchronized TrafficReport take() {
    List<ShuffleTraffic> taken = new ArrayList<>();
    Iterator<Map.Entry<Integer, long[]>> oldest = shuffles.entrySet().iterator();
    while (oldest.hasNext() && taken.size() < TrafficReport.MAX_ENTRIES) {
      Map.Entry<Integer, long[]> entry = oldest.next();
      taken.add(ShuffleTraffic.of(entry.getKey(), entry.getValue()));
      oldest.remove();
    }
    boolean byHost = sources.size() > MAX_EXECUTORS;
    Map<String, Long> read = new TreeMap<>();
    Iterator<Map.Entry<String, Source>> rest = sources.entrySet().iterator();
    while (rest.hasNext() && read.size() < TrafficReport.MAX_ENTRIES) {
      Map.Entry<String, Source> entry = rest.next();
      Source source = entry.getValue();
      read.merge(byHost ? source.host : entry.getKey(), source.bytes, Long::sum);
      rest.remove();
    }
    return new TrafficReport(taken, byHost, read);
  }

  /** Collects what one reader of blocks read. For one thread. */
  public static final class ReaderTraffic {
    private final Traffic traffic;
    private final Map<String, Source> sources = new HashMap<>();
    private final long[] figures = new long[Figure.COUNT];
    private int shuffleId = -1;
    private String lastExecutor;
    private Source last;

    /**
     * Starts without figures.
     *
     * @param traffic of the executor, which {@link #flush()} adds to
     */
    public ReaderTraffic(Traffic traffic) {
      this.traffic = traffic;
    }

    /**
     * Adds bytes of blocks.
     *
     * @param figure the path by which they came
     * @param executorId the executor that had the blocks
     * @param host of that executor; empty for this one
     */
    public void read(int shuffle, Figure figure, String executorId, String host, long bytes) {
      if (shuffle != shuffleId) {
        flush();
        shuffleId = shuffle;
      }
      figures[figure.index()] += bytes;
      if (!executorId.equals(lastExecutor)) {
        last = sources.computeIfAbsent(executorId, id -> new Source(host));
        lastExecutor = executorId;
      }
      last.bytes += bytes;
    }

    /**
     * Adds nanoseconds without a block to read.
     *
     * @param shuffle whose blocks were missing
     */
    public void waited(int shuffle, long nanos) {
      if (shuffle != shuffleId) {
        flush();
        shuffleId = shuffle;
      }
      figures[Figure.WAIT_NANOS.index()] += nanos;
    }

    /** Adds all figures to those of the executor, and starts again at zero. */
    public void flush() {
      for (Figure figure : Figure.values()) {
        traffic.add(shuffleId, figure, figures[figure.index()]);
        figures[figure.index()] = 0;
      }
      sources.forEach((executor, source) -> traffic.read(executor, source.host, source.bytes));
      sources.clear();
      lastExecutor = null;
    }
  }
}
