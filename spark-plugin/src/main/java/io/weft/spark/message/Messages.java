package io.weft.spark.message;

import io.weft.peer.PeerAddress;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLoss;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.rendezvous.StageAttempt;
import java.io.Serializable;
import java.util.List;

/**
 * What executors say to the driver and hear back. Records, because Java reads a record by the names
 * of its fields, so that two versions of Weft understand each other well enough to part politely.
 */
public final class Messages {
  private Messages() {}

  /** A message of an executor. */
  public sealed interface ToDriver extends Serializable
      permits Hello,
          Announce,
          Lookup,
          MemoryPressure,
          Report,
          Meet,
          MeetClique,
          AskDepartures,
          AskEnded,
          RankNews {}

  /** Asked first: may an executor of this version join? Answered by a {@link Verdict}. */
  public record Hello(String executorId, String host, String version) implements ToDriver {}

  /**
   * Asked once the exchange runs. Answered by a {@link Verdict}.
   *
   * @param remark what a user should know of the executor, as a sentence; null if nothing
   */
  public record Announce(PeerAddress address, String remark) implements ToDriver {}

  /** Asks where an executor is. Answered by a {@link Found}. */
  public record Lookup(String executorId) implements ToDriver {}

  /** Sent when an executor's arena runs full of shuffles that perhaps nobody needs any more. */
  public record MemoryPressure(String executorId) implements ToDriver {}

  /** Sent from time to time for the UI. */
  public record Report(ExecutorReport report) implements ToDriver {}

  /**
   * Asked by a task of a barrier stage, again and again. Answered by a {@link
   * io.weft.spark.rendezvous.RendezvousAnswer}.
   */
  public record Meet(RendezvousCall<StageAttempt> call) implements ToDriver {}

  /**
   * Asked by one end of a clique of transfers, again and again. Answered by a {@link
   * io.weft.spark.rendezvous.RendezvousAnswer}.
   */
  public record MeetClique(RendezvousCall<CliquePair> call) implements ToDriver {}

  /**
   * Asks which executors are gone. Answered by {@link Departures}.
   *
   * @param known how many of them the executor has heard of
   */
  public record AskDepartures(int known) implements ToDriver {}

  /**
   * Asks which of these shuffles have ended. Answered by {@link Ended}.
   *
   * @param shuffles at most {@link #MOST} of which the executor holds outputs
   */
  public record AskEnded(List<Integer> shuffles) implements ToDriver {
    /** So many go into one message. */
    public static final int MOST = 4096;

    public AskEnded {
      shuffles = List.copyOf(shuffles);
      if (shuffles.size() > MOST) {
        throw new IllegalArgumentException(shuffles.size() + " shuffles are more than " + MOST);
      }
    }
  }

  /**
   * Told by a rank of a feed when it begins and when it fails. Answered by a {@link Verdict}, so
   * that the rank knows that the driver has it.
   *
   * @param feed its number in the application
   * @param attempt of the ranks' stage, from 0
   * @param own whether the rank's function failed of itself
   * @param error what it failed of; null where it begins
   */
  public record RankNews(int feed, int attempt, int rank, boolean own, String error)
      implements ToDriver {}

  /** Shuffles that Spark does not know any more. */
  public record Ended(List<Integer> shuffles) implements Serializable {
    public Ended {
      shuffles = List.copyOf(shuffles);
    }
  }

  /** Executors that are gone, in the order in which the driver heard of it. */
  public record Departures(List<ExecutorLoss> departures) implements Serializable {
    public Departures {
      departures = List.copyOf(departures);
    }
  }

  /**
   * Whether an executor may go on.
   *
   * @param refusal why not, as a sentence; null if it may
   */
  public record Verdict(String refusal) implements Serializable {
    public static final Verdict WELCOME = new Verdict(null);
  }

  /**
   * The answer to a lookup.
   *
   * @param address null if the executor has not announced itself
   */
  public record Found(PeerAddress address) implements Serializable {}
}
