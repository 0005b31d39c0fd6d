package io.weft.spark.feed;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.device.EventTimeoutException;
import io.weft.spark.config.NoRepeat;
import io.weft.spark.runtime.Messages.FeedRankReport;
import io.weft.spark.runtime.WeftExecutor;
import io.weft.transfers.TransferException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.shuffle.FetchFailedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Collects what the ranks of one feed report about their attempts while the driver waits for the
 * feed. Ranks report before their tasks end, because Spark's own task events come in any order. If
 * other ranks abort first, Spark may report nothing about the rank that caused the failure.
 *
 * <p>Thread-safe. Reports that arrive after close are dropped.
 */
public final class FeedReports implements AutoCloseable {
  private static final ConcurrentMap<Integer, FeedReports> OPEN = new ConcurrentHashMap<>();

  private final int feed;
  private final StageEnd stages;
  private final List<RankFailure> failures = new ArrayList<>();
  private int lastAttempt;

  /** Ends a stage and its job without another attempt. Must not block. */
  interface StageEnd {
    void end(int stage, String reason);
  }

  private FeedReports(int feed, StageEnd stages) {
    this.feed = feed;
    this.stages = stages;
  }

  /**
   * Starts to collect reports of a feed.
   *
   * @param stages ends the ranks' stage when a report says that a repeat would fail again
   */
  static FeedReports open(int feed, StageEnd stages) {
    FeedReports reports = new FeedReports(feed, stages);
    OPEN.put(feed, reports);
    return reports;
  }

  /** Records a report of a rank. Does not block; any thread may call it. */
  public static void receive(FeedRankReport report) {
    FeedReports open = OPEN.get(report.feed());
    if (open != null) {
      boolean present = open.take(report);
      if (present && report.ends() != FeedRankReport.NONE) {
        open.stages.end(report.ends(), report.error());
      }
    }
  }

  /** Returns the reports of a feed that the driver waits for. */
  static Optional<FeedReports> of(int feed) {
    return Optional.ofNullable(OPEN.get(feed));
  }

  /**
   * Returns whether it is of the last attempt that began. Ranks of an executor that Spark has given
   * up may still report, and a later attempt does not run there.
   */
  private synchronized boolean take(FeedRankReport report) {
    lastAttempt = Math.max(lastAttempt, report.attempt());
    if (report.error() != null) {
      failures.add(new RankFailure(report.attempt(), report.rank(), report.own(), report.error()));
    }
    return report.attempt() == lastAttempt;
  }

  /** Returns the failure of the last attempt that began, if a rank's function caused it. */
  synchronized Optional<RankFailure> decisive() {
    return RankFailure.decisive(failures, lastAttempt);
  }

  @Override
  public void close() {
    boolean unused = OPEN.remove(feed, this);
  }

  /**
   * The failure of a rank, as its task reports it to the driver.
   *
   * @param attempt of the ranks' stage, from 0
   * @param own whether the rank's function itself failed
   * @param error the exception
   */
  record RankFailure(int attempt, int rank, boolean own, String error) {
    private static final Logger LOG = LoggerFactory.getLogger(RankFailure.class);

    /**
     * A rank that calls a collective incorrectly will do so again; the other kinds have external
     * causes.
     */
    private static final Set<Kind> MISTAKES = Set.of(Kind.INVALID, Kind.MISMATCH);

    static RankFailure of(int attempt, int rank, Throwable error) {
      return new RankFailure(attempt, rank, isOwn(error), error.toString());
    }

    private static boolean isOwn(Throwable error) {
      if (NoRepeat.isIn(error)) {
        return true;
      }
      for (Throwable each = error; each != null; each = each.getCause()) {
        if (isExternal(each)) {
          return false;
        }
      }
      return true;
    }

    private static boolean isExternal(Throwable error) {
      return error instanceof CollectiveException collective
          ? !MISTAKES.contains(collective.kind())
          : error instanceof IOException
              || error instanceof InterruptedException
              || error instanceof TransferException
              || error instanceof EventTimeoutException
              || error instanceof TaskKilledException
              || error instanceof FetchFailedException
              || error instanceof VirtualMachineError;
    }

    /** Reports to the driver that a rank's task begins, so that the driver knows of the attempt. */
    static void reportBegin(int feed, int rank, TaskContext context) {
      report(
          new FeedRankReport(
              feed, context.stageAttemptNumber(), rank, false, FeedRankReport.NONE, null));
    }

    /**
     * Reports to the driver why a rank's task is about to fail, and waits for the acknowledgement.
     * After the task has ended, its communicator aborts the other ranks, and their tasks fail too.
     * If a repeat would fail again, the driver ends the stage before it hears of the task's end.
     */
    static void report(int feed, int rank, TaskContext context, Throwable error) {
      RankFailure failure = of(context.stageAttemptNumber(), rank, error);
      int ends = NoRepeat.isIn(error) ? context.stageId() : FeedRankReport.NONE;
      report(
          new FeedRankReport(feed, failure.attempt(), rank, failure.own(), ends, failure.error()));
    }

    private static void report(FeedRankReport report) {
      try {
        Object unused = WeftExecutor.ask(report);
      } catch (Exception e) {
        if (e instanceof InterruptedException) {
          Thread.currentThread().interrupt();
        }
        LOG.warn("The driver may not have received this: {}", report, e);
      }
    }

    /** Returns the failure of the last attempt that began, if a rank's function caused it. */
    static Optional<RankFailure> decisive(List<RankFailure> all, int last) {
      return all.stream()
          .filter(failure -> failure.own() && failure.attempt() == last)
          .min(Comparator.comparingInt(RankFailure::rank));
    }

    RankFailedException exception(Throwable cause) {
      return new RankFailedException(
          rank, "The function of rank %d of a feed failed: %s".formatted(rank, error), cause);
    }
  }
}
