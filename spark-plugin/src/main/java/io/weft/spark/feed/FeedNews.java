package io.weft.spark.feed;

import io.weft.spark.message.Messages.RankNews;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * What the ranks of one feed have told the driver of their attempts, while it waits for them. They
 * tell before their tasks end: what Spark says of tasks comes in any order, and of those that were
 * aborted by others first, it may say nothing at all of the one whose fault it was.
 *
 * <p>Thread-safe. Close it, and what comes later is dropped.
 */
public final class FeedNews implements AutoCloseable {
  private static final ConcurrentMap<Integer, FeedNews> OPEN = new ConcurrentHashMap<>();

  private final int feed;
  private final List<RankFailure> failures = new ArrayList<>();
  private int lastAttempt;

  private FeedNews(int feed) {
    this.feed = feed;
  }

  /** Takes news of a feed from now on. */
  static FeedNews open(int feed) {
    FeedNews news = new FeedNews(feed);
    OPEN.put(feed, news);
    return news;
  }

  /** Takes down what a rank has told; from any thread, without waiting. */
  public static void heard(RankNews news) {
    FeedNews open = OPEN.get(news.feed());
    if (open != null) {
      open.take(news);
    }
  }

  /** What is known of a feed that the driver waits for. */
  static Optional<FeedNews> of(int feed) {
    return Optional.ofNullable(OPEN.get(feed));
  }

  private synchronized void take(RankNews news) {
    lastAttempt = Math.max(lastAttempt, news.attempt());
    if (news.error() != null) {
      failures.add(new RankFailure(news.attempt(), news.rank(), news.own(), news.error()));
    }
  }

  /** Why the last attempt that began has failed, if it was a function of itself. */
  synchronized Optional<RankFailure> decisive() {
    return RankFailure.decisive(failures, lastAttempt);
  }

  @Override
  public void close() {
    boolean unused = OPEN.remove(feed, this);
  }
}
