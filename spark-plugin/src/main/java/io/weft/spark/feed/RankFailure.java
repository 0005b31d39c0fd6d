package io.weft.spark.feed;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.crosshost.TransferException;
import io.weft.device.EventTimeoutException;
import io.weft.spark.executor.WeftExecutor;
import io.weft.spark.message.Messages.RankNews;
import java.io.IOException;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.shuffle.FetchFailedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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
    for (Throwable each = error; each != null; each = each.getCause()) {
      if (comesFromOutside(each)) {
        return false;
      }
    }
    return true;
  }

  private static boolean comesFromOutside(Throwable error) {
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
  static void tellBegin(int feed, int rank, TaskContext context) {
    tell(new RankNews(feed, context.stageAttemptNumber(), rank, false, null));
  }

  /**
   * Reports to the driver why a rank's task is about to fail, and waits for the acknowledgement.
   * After the task has ended, its communicator aborts the other ranks, and their tasks fail too.
   */
  static void tell(int feed, int rank, TaskContext context, Throwable error) {
    RankFailure failure = of(context.stageAttemptNumber(), rank, error);
    tell(new RankNews(feed, failure.attempt(), rank, failure.own(), failure.error()));
  }

  private static void tell(RankNews news) {
    try {
      Object unused = WeftExecutor.ask(news);
    } catch (Exception e) {
      if (e instanceof InterruptedException) {
        Thread.currentThread().interrupt();
      }
      LOG.warn("The driver may not have received this: {}", news, e);
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
