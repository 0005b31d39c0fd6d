package io.weft.spark.runtime;

import io.weft.shuffle.AdoptionAgreement.Step;
import io.weft.shuffle.peer.AddressList;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.peer.TrafficReport;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLosses.ExecutorLoss;
import io.weft.spark.rendezvous.RendezvousCall;
import io.weft.spark.rendezvous.StageRendezvous.StageAttempt;
import io.weft.spark.runtime.WeftMetrics.ExecutorStatistics;
import io.weft.spark.runtime.WeftMetrics.Metric;
import java.io.IOException;
import java.io.InvalidObjectException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The messages of executors to the driver, and its answers. Java deserializes records by the names
 * of their fields. Two versions of Weft can therefore read each other's messages and report a
 * version mismatch.
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
          StageCall,
          CliqueCall,
          AskLosses,
          AskEnded,
          Adopt,
          AskAdoption,
          Copied,
          AskCopied,
          CopyNotRead,
          FeedRankReport {}

  /**
   * The first message: asks whether an executor of this version may join. Answered by a {@link
   * Verdict}.
   */
  public record Hello(String executorId, String host, String version) implements ToDriver {}

  /**
   * Sent when the executor's exchange has started. Answered by a {@link Verdict}.
   *
   * @param remark a warning for the user, as a sentence; null if there is none
   */
  public record Announce(PeerAddress address, String remark) implements ToDriver {}

  /**
   * Asks for the addresses of executors. Answered by a {@link Found}.
   *
   * @param bootId of the sender's kernel
   */
  public record Lookup(String bootId, List<String> executorIds) implements ToDriver {
    public Lookup {
      executorIds = List.copyOf(executorIds);
    }
  }

  /** Sent when an executor's arena is full, perhaps of shuffles that are no longer needed. */
  public record MemoryPressure(String executorId) implements ToDriver {}

  /**
   * Sent for the UI after changes, and when the executor ends.
   *
   * @param report the metrics at one time
   * @param traffic what the executor wrote and read since its last report
   * @param last whether the executor ends, so that no report follows
   */
  public record Report(ExecutorReport report, TrafficReport traffic, boolean last)
      implements ToDriver {}

  /**
   * Polled by a task of a barrier stage. Answered by a {@link
   * io.weft.spark.rendezvous.RendezvousAnswer}.
   */
  public record StageCall(RendezvousCall<StageAttempt> call) implements ToDriver {}

  /**
   * Polled by one member of a clique of transfers. Answered by a {@link
   * io.weft.spark.rendezvous.RendezvousAnswer}.
   */
  public record CliqueCall(RendezvousCall<CliquePair> call) implements ToDriver {}

  /**
   * Asks for the lost executors. Answered by {@link Losses}.
   *
   * @param known the number of the last loss that the sender knows; 0 for none
   */
  public record AskLosses(int known) implements ToDriver {}

  /**
   * Asks which of these shuffles have ended. Answered by {@link Ended}.
   *
   * @param shuffles at most {@link #MOST} shuffles whose outputs the executor holds
   */
  public record AskEnded(List<Integer> shuffles) implements ToDriver {
    /** Maximum number of shuffles in one message. */
    public static final int MOST = 4096;

    public AskEnded {
      shuffles = List.copyOf(shuffles);
      if (shuffles.size() > MOST) {
        throw new IllegalArgumentException(shuffles.size() + " shuffles are more than " + MOST);
      }
    }
  }

  /**
   * A request of an executor about the map outputs of one that died on its host. Answered by an
   * {@link Adoption}; while that is pending, the executor sends {@link AskAdoption}.
   *
   * @param adopter the sender's Spark id
   * @param number of the request of this sender. It ends a request with a lower number that the
   *     driver has not begun. The same number is the same request
   * @param step what the driver does
   * @param host of the sender's block manager
   * @param port of the sender's block manager
   * @param topology of the sender's block manager; null if it has none
   * @param executorId of the dead executor
   * @param incarnation of the dead executor
   * @param outputs the map ids of these outputs, by shuffle
   */
  public record Adopt(
      String adopter,
      int number,
      Step step,
      String host,
      int port,
      String topology,
      String executorId,
      String incarnation,
      Map<Integer, long[]> outputs)
      implements ToDriver {}

  /** Asks for the answer to a request. Answered by an {@link Adoption}. */
  public record AskAdoption(String adopter, int number) implements ToDriver {}

  /**
   * Sent after a map output was copied. Not answered.
   *
   * @param executorId of the sender, which has the output
   * @param own whether the sender has made the copy; if not, the driver knew one of another
   *     executor
   * @param leaving whether the sender is decommissioned, so that readers should use the copy
   */
  public record Copied(String executorId, int shuffleId, long mapId, boolean own, boolean leaving)
      implements ToDriver {}

  /**
   * Asks whether a copy of a map output is known, which another executor may have made. Answered by
   * a {@link CopyKnown}.
   */
  public record AskCopied(int shuffleId, long mapId) implements ToDriver {}

  /** Sent when Spark's own reader could not read a copy of a shuffle. Not answered. */
  public record CopyNotRead(int shuffleId) implements ToDriver {}

  /** The answer to {@link AskCopied}. */
  public record CopyKnown(boolean known) implements Serializable {}

  /**
   * Sent by a rank of a feed when it starts and when it fails. Answered by a {@link Verdict}, which
   * acknowledges it.
   *
   * @param feed its number in the application
   * @param attempt of the ranks' stage, from 0
   * @param own whether the rank's own function failed
   * @param ends the ranks' stage if a repeat would fail again, else {@link #NONE}
   * @param error the error; null if the rank starts
   */
  public record FeedRankReport(int feed, int attempt, int rank, boolean own, int ends, String error)
      implements ToDriver {
    public static final int NONE = -1;
  }

  /** Shuffles that Spark has unregistered. */
  public record Ended(List<Integer> shuffles) implements Serializable {
    public Ended {
      shuffles = List.copyOf(shuffles);
    }
  }

  /**
   * The answer to a request about map outputs of a dead executor.
   *
   * @param refusal why the driver refuses or has failed, as a clause; only if refused
   * @param outputs the map ids for which the answer is yes, by shuffle; only if done
   */
  public record Adoption(State state, String refusal, Map<Integer, long[]> outputs)
      implements Serializable {
    /** What the driver has done. */
    public enum State {
      /** It will answer later. */
      PENDING,
      /** It does not have the request. */
      UNKNOWN,
      /** It refuses or has failed. */
      REFUSED,
      /** It has removed the executor that asks. */
      ADOPTER_REMOVED,
      /** It has answered. */
      DONE
    }

    /** An answer without details. */
    public static Adoption of(State state) {
      return new Adoption(state, null, null);
    }

    /** The answer if the driver refuses or has failed. */
    public static Adoption refused(String reason) {
      return new Adoption(State.REFUSED, reason, null);
    }

    /** The answer with outputs. */
    public static Adoption done(Map<Integer, long[]> outputs) {
      return new Adoption(State.DONE, null, new HashMap<>(outputs));
    }
  }

  /** Lost executors, in the order in which the driver noticed. */
  public record Losses(List<ExecutorLoss> losses) implements Serializable {
    public Losses {
      losses = List.copyOf(losses);
    }
  }

  /**
   * Whether an executor may continue.
   *
   * @param refusal why not, as a sentence; null if it may
   */
  public record Verdict(String refusal) implements Serializable {
    public static final Verdict WELCOME = new Verdict(null);
  }

  /**
   * The answer to a lookup. It is sent as an {@link AddressList}, because a thousand addresses as
   * Java objects would take ten times the bytes and time.
   *
   * @param addresses without executors that have ended or not announced themselves. Addresses on
   *     other kernels than the sender's are {@link PeerAddress#withoutFolder}
   */
  public record Found(List<PeerAddress> addresses) implements Serializable {
    public Found {
      addresses = List.copyOf(addresses);
    }

    private Object writeReplace() {
      return new EncodedAddresses(AddressList.encode(addresses));
    }

    /** How addresses are sent. */
    @SuppressWarnings("ArrayRecordComponent") // Never compared.
    private record EncodedAddresses(byte[] bytes) implements Serializable {
      private Object readResolve() throws InvalidObjectException {
        try {
          return new Found(AddressList.decode(bytes));
        } catch (IOException e) {
          throw (InvalidObjectException) new InvalidObjectException(e.getMessage()).initCause(e);
        }
      }
    }
  }

  /** The message for an executor with another version of Weft than the driver. */
  public static final class VersionMismatch {
    private VersionMismatch() {}

    /** Returns the message. */
    public static String message(String executorId, String host, String executors, String drivers) {
      return ("Executor %s on %s runs Weft %s, but the driver runs Weft %s. Put the same jar in the"
              + " jars folder of every host, or pass it with --jars.")
          .formatted(executorId, host, executors, drivers);
    }
  }

  /**
   * The metrics of an executor at one time.
   *
   * @param executorId Spark's executor id
   * @param host where it runs
   * @param values values by metric name, without zeros
   */
  public record ExecutorReport(String executorId, String host, Map<String, Long> values)
      implements Serializable {
    /** Creates the report of an executor. */
    static ExecutorReport of(String executorId, String host, ExecutorStatistics statistics) {
      Map<String, Long> values = new HashMap<>();
      for (Metric metric : WeftMetrics.all()) {
        long value = metric.read(statistics);
        if (value != 0) {
          values.put(metric.name(), value);
        }
      }
      return new ExecutorReport(executorId, host, values);
    }

    /** The value of one metric. */
    public long get(Metric metric) {
      return get(metric.name());
    }

    /** The value of the metric with a name; 0 if there is no such metric. */
    public long get(String name) {
      return values.getOrDefault(name, 0L);
    }
  }
}
