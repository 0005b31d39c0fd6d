package io.weft.spark.transfers;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.UniqueId;
import io.weft.collectives.clique.CliqueKey;
import io.weft.device.Deadline;
import io.weft.spark.rendezvous.CliquePair;
import io.weft.spark.rendezvous.RendezvousAnswer;
import io.weft.spark.rendezvous.RendezvousCall;
import java.io.IOException;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One end of a clique's rendezvous on the driver. It polls the driver, often at first, then less
 * often. Used by one thread at a time.
 */
final class CliqueBootstrap implements Bootstrap {
  private static final Logger LOG = LoggerFactory.getLogger(CliqueBootstrap.class);
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final long LAST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

  private final TransferDriver driver;
  private final String ticket = UUID.randomUUID().toString();
  private final CliquePair clique;
  private final int rank;
  private UniqueId id;

  private CliqueBootstrap(TransferDriver driver, CliquePair clique, int rank) {
    this.driver = driver;
    this.clique = clique;
    this.rank = rank;
  }

  /**
   * Joins the rendezvous. Does not wait for the other end.
   *
   * @throws IOException if the driver does not answer before the deadline
   */
  static CliqueBootstrap join(TransferDriver driver, CliqueKey key, int rank, Deadline deadline)
      throws IOException {
    CliquePair clique =
        new CliquePair(
            key.members().stream()
                .map(
                    member ->
                        new CliquePair.End(
                            member.process(), member.incarnation(), member.device().toString()))
                .toList());
    CliqueBootstrap bootstrap = new CliqueBootstrap(driver, clique, rank);
    bootstrap.join(deadline);
    return bootstrap;
  }

  private void join(Deadline deadline) throws IOException {
    Exception last = null;
    long pause = FIRST_PAUSE_NANOS;
    do {
      try {
        id = UniqueId.decode(driver.ask(call(RendezvousCall.JOIN, null)).id());
        return;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new IOException("interrupted", e);
      } catch (Exception e) {
        last = e;
      }
      LockSupport.parkNanos(this, Math.min(pause, deadline.remainingNanos()));
      pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
    } while (!deadline.expired());
    throw new IOException("the driver gave no answer within " + deadline + ": " + last, last);
  }

  private RendezvousCall<CliquePair> call(String round, byte[] message) {
    return new RendezvousCall<>(
        clique, ticket, rank, nranks(), end(rank).toString(), round, message, null);
  }

  @Override
  public UniqueId id() {
    return id;
  }

  @Override
  public int rank() {
    return rank;
  }

  @Override
  public int nranks() {
    return clique.ends().size();
  }

  private CliquePair.End end(int member) {
    return clique.ends().get(member);
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    RendezvousCall<CliquePair> call = call(round, mine);
    RendezvousAnswer last = null;
    Exception unanswered = null;
    long pause = FIRST_PAUSE_NANOS;
    while (true) {
      try {
        last = driver.ask(last == null ? call : call.withoutMessage());
        unanswered = null;
        // A complete round was complete before the failure.
        if (last.messages() != null) {
          return last.messages();
        }
        if (last.failure() != null) {
          throw new CollectiveException(Kind.ABORTED, List.of(1 - rank), last.failure());
        }
      } catch (CollectiveException e) {
        throw e;
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      } catch (Exception e) {
        unanswered = e;
      }
      requireTime(round, unanswered, deadline);
      LockSupport.parkNanos(this, Math.min(pause, deadline.remainingNanos()));
      pause = Math.min(2 * pause, LAST_PAUSE_NANOS);
    }
  }

  private void requireTime(String round, Exception unanswered, Deadline deadline) {
    if (!deadline.expired() && !Thread.currentThread().isInterrupted()) {
      return;
    }
    String end = deadline.expired() ? "within " + deadline : "before the interrupt";
    throw new CollectiveException(
        deadline.expired() ? Kind.TIMEOUT : Kind.ABORTED,
        List.of(1 - rank),
        unanswered == null
            ? "%s did not come to meet %s (round %s) %s"
                .formatted(end(1 - rank), end(rank), round, end)
            : "the driver gave %s no answer about %s (round %s) %s: %s"
                .formatted(end(rank), end(1 - rank), round, end, unanswered),
        unanswered);
  }

  @Override
  public void close() {
    try {
      RendezvousAnswer unused = driver.ask(call(RendezvousCall.LEAVE, null));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Exception e) {
      LOG.debug("The driver did not learn that {} left its rendezvous", end(rank), e);
    }
  }
}
