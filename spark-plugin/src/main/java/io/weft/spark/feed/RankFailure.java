package io.weft.spark.feed;

import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.crosshost.TransferException;
import io.weft.device.EventTimeoutException;
import java.io.IOException;
import java.io.Serializable;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.TaskKilledException;
import org.apache.spark.shuffle.FetchFailedException;

/**
 * How a rank's function ended, as its task tells the driver.
 *
 * @param attempt of the ranks' stage, from 0
 * @param own whether the function failed of itself
 * @param error what it threw
 */
record RankFailure(int attempt, int rank, boolean own, String error) implements Serializable {
  /** Ranks that call a collective in a wrong way do so again; the other kinds come from outside. */
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

  /** Why the last attempt failed, if it was a function of itself. */
  static Optional<RankFailure> decisive(List<RankFailure> all) {
    int last = all.stream().mapToInt(RankFailure::attempt).max().orElse(0);
    return all.stream()
        .filter(failure -> failure.own() && failure.attempt() == last)
        .min(Comparator.comparingInt(RankFailure::rank));
  }

  RankFailedException exception(Throwable cause) {
    return new RankFailedException(
        rank, "The function of rank %d of a feed failed: %s".formatted(rank, error), cause);
  }
}
