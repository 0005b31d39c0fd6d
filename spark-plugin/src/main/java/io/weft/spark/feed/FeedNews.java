package io.weft.spark.feed;

import io.weft.spark.message.Messages.RankNews;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * Collects what the ranks of one feed report about their attempts while the driver waits for the
 * feed. Ranks report before their tasks end, because Spark's own task events come in any order. If
 * other ranks abort first, Spark may report nothing about the rank that caused the failure.
 *
 * <p>Thread-safe. Reports that arrive after close are dropped.
 */
public final class FeedNews implements AutoCloseable {
  private static final ConcurrentMap<Integer, FeedNews> OPEN = new ConcurrentHashMap<>();

  private final int feed;
  private final List<RankFailure> failures = new ArrayList<>();
  private int lastAttempt;

  private FeedNews(int feed) {
    this.feed = feed;
  }

  /** Starts to collect reports of a feed. */
  static FeedNews open(int feed) {
    FeedNews reports = new FeedNews(feed);
    OPEN.put(feed, reports);
    return reports;
  }

  /** Records a report of a rank. Does not block; any thread may call it. */
  public static void heard(RankNews report) {
    FeedNews open = OPEN.get(report.feed());
    if (open != null) {
      open.take(report);
    }
  }

  /** Returns the reports of a feed that the driver waits for. */
  static Optional<FeedNews> of(int feed) {
    return Optional.ofNullable(OPEN.get(feed));
  }

  private synchronized void take(RankNews report) {
    lastAttempt = Math.max(lastAttempt, report.attempt());
    if (report.error() != null) {
      failures.add(new RankFailure(report.attempt(), report.rank(), report.own(), report.error()));
    }
  }

  /** Returns the failure of the last attempt that began, if a rank's function caused it. */
  synchronized Optional<RankFailure> decisive() {
    return RankFailure.decisive(failures, lastAttempt);
  }

  @Override
  public void close() {
    boolean unused = OPEN.remove(feed, this);
  }
}
