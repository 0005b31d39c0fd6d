package io.weft.spark.driver;

import io.weft.spark.config.WeftVersion;
import io.weft.spark.feed.FeedReports;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.ExecutorLosses;
import io.weft.spark.rendezvous.RendezvousService;
import io.weft.spark.rendezvous.StageRendezvous;
import io.weft.spark.runtime.Messages.Adopt;
import io.weft.spark.runtime.Messages.Announce;
import io.weft.spark.runtime.Messages.AskAdoption;
import io.weft.spark.runtime.Messages.AskCopied;
import io.weft.spark.runtime.Messages.AskEnded;
import io.weft.spark.runtime.Messages.AskLosses;
import io.weft.spark.runtime.Messages.CliqueCall;
import io.weft.spark.runtime.Messages.Copied;
import io.weft.spark.runtime.Messages.CopyKnown;
import io.weft.spark.runtime.Messages.CopyNotRead;
import io.weft.spark.runtime.Messages.Ended;
import io.weft.spark.runtime.Messages.FeedRankReport;
import io.weft.spark.runtime.Messages.Found;
import io.weft.spark.runtime.Messages.Hello;
import io.weft.spark.runtime.Messages.Lookup;
import io.weft.spark.runtime.Messages.Losses;
import io.weft.spark.runtime.Messages.MemoryPressure;
import io.weft.spark.runtime.Messages.Report;
import io.weft.spark.runtime.Messages.StageCall;
import io.weft.spark.runtime.Messages.ToDriver;
import io.weft.spark.runtime.Messages.Verdict;
import io.weft.spark.runtime.Messages.VersionMismatch;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers the messages of executors on the driver. Never blocks, because Spark has one thread for
 * the messages of all executors to all plugins.
 *
 * <p>Thread-safe.
 */
public final class DriverAnswers {
  private static final Logger LOG = LoggerFactory.getLogger(DriverAnswers.class);

  private final DriverState state;
  private final StageRendezvous stages;
  private final TransferRendezvous transfers;
  private final OutputAdoptions adoptions;
  private final KnownCopies copies;
  private final Consumer<String> pressed;

  /**
   * The driver's state for transfers.
   *
   * @param cliques rendezvous of the members of cliques
   * @param losses lost executors
   */
  public record TransferRendezvous(RendezvousService<CliquePair> cliques, ExecutorLosses losses) {}

  /** The copies of map outputs. Must not block. */
  public interface KnownCopies {
    /** Takes the message of an executor. */
    void copied(Copied copy);

    /** Whether a copy of an output is known. */
    boolean isCopied(int shuffle, long map);

    /** Takes the message of an executor that could not read a copy of a shuffle. */
    void notRead(int shuffle);
  }

  /**
   * Creates the answers from the driver's state.
   *
   * @param stages rendezvous of the tasks of barrier stages
   * @param transfers state that executors request for their transfers
   * @param adoptions of map outputs of dead executors
   * @param copies of map outputs
   * @param pressed receives the id of an executor that runs out of memory
   */
  public DriverAnswers(
      DriverState state,
      StageRendezvous stages,
      TransferRendezvous transfers,
      OutputAdoptions adoptions,
      KnownCopies copies,
      Consumer<String> pressed) {
    this.state = state;
    this.stages = stages;
    this.transfers = transfers;
    this.adoptions = adoptions;
    this.copies = copies;
    this.pressed = pressed;
  }

  /** Returns the answer to a message, or null if it needs none. */
  public Object to(Object message) {
    if (!(message instanceof ToDriver known)) {
      throw new IllegalArgumentException(
          "Weft " + WeftVersion.current() + " on the driver does not know the message " + message);
    }
    return to(known);
  }

  private Object to(ToDriver message) {
    if (message instanceof Lookup lookup) {
      return new Found(state.find(lookup.bootId(), lookup.executorIds()));
    } else if (message instanceof StageCall stage) {
      return stages.answer(stage.call());
    } else if (message instanceof CliqueCall clique) {
      return transfers.cliques().answer(clique.call());
    } else if (message instanceof AskLosses ask) {
      return new Losses(transfers.losses().since(ask.known()));
    } else if (message instanceof AskEnded ask) {
      return new Ended(DriverState.ended(ask.shuffles()));
    } else if (message instanceof Adopt adopt) {
      return adoptions.answer(adopt);
    } else if (message instanceof AskAdoption ask) {
      return adoptions.answer(ask);
    } else if (message instanceof Copied copied) {
      copies.copied(copied);
    } else if (message instanceof AskCopied ask) {
      return new CopyKnown(copies.isCopied(ask.shuffleId(), ask.mapId()));
    } else if (message instanceof CopyNotRead unread) {
      copies.notRead(unread.shuffleId());
    } else if (message instanceof Hello hello) {
      return greet(hello);
    } else if (message instanceof Announce announce) {
      state.announced(announce.address());
      state.remarked(announce.address(), announce.remark());
      return Verdict.WELCOME;
    } else if (message instanceof FeedRankReport rank) {
      FeedReports.receive(rank);
      return Verdict.WELCOME;
    } else if (message instanceof MemoryPressure pressure) {
      state.activity().pressed(pressure.executorId());
      pressed.accept(pressure.executorId());
    } else if (message instanceof Report report) {
      state.reported(report);
    }
    return null;
  }

  private Verdict greet(Hello hello) {
    state.greeted(hello.executorId());
    if (hello.version().equals(WeftVersion.current())) {
      return Verdict.WELCOME;
    }
    String refusal =
        VersionMismatch.message(
            hello.executorId(), hello.host(), hello.version(), WeftVersion.current());
    LOG.error(refusal);
    return new Verdict(refusal);
  }
}
