package io.weft.spark.rapids.data;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.device.Deadline;
import io.weft.spark.rapids.control.ControlMessage.BootstrapRound;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * The bootstrap of the two ends of a lane. The message of a round goes to the other end over their
 * connection. The client is rank 0, the server rank 1. Thread-safe.
 */
final class LaneMeeting implements Bootstrap {
  private final UniqueId id;
  private final int rank;
  private final long epoch;
  private final String ends;
  private final Consumer<BootstrapRound> out;
  private final Map<String, byte[]> received = new HashMap<>();
  private String failure;

  /**
   * Creates one end.
   *
   * @param ends both ends, for messages
   * @param out sends to the other end
   */
  LaneMeeting(UniqueId id, int rank, long epoch, String ends, Consumer<BootstrapRound> out) {
    this.id = id;
    this.rank = rank;
    this.epoch = epoch;
    this.ends = ends;
    this.out = out;
  }

  long epoch() {
    return epoch;
  }

  /** Takes the other end's message of a round. */
  synchronized void hear(String round, byte[] message) {
    received.put(round, message);
    notifyAll();
  }

  /** Fails waiting and later rounds. */
  synchronized void fail(String reason) {
    failure = reason;
    notifyAll();
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
    return 2;
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    out.accept(new BootstrapRound(epoch, round, mine));
    byte[] theirs = await(round, deadline);
    return rank == 0 ? List.of(mine, theirs) : List.of(theirs, mine);
  }

  private synchronized byte[] await(String round, Deadline deadline) {
    try {
      while (failure == null && !received.containsKey(round) && !deadline.expired()) {
        TimeUnit.NANOSECONDS.timedWait(this, Math.max(1, deadline.remainingNanos()));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw failed(Kind.ABORTED, "interrupted in round " + round);
    }
    if (received.containsKey(round)) {
      return received.remove(round);
    }
    if (failure != null) {
      throw failed(Kind.ABORTED, failure);
    }
    throw failed(
        Kind.TIMEOUT, "the other end did not answer in round " + round + " within " + deadline);
  }

  private CollectiveException failed(Kind kind, String reason) {
    return new CollectiveException(
        kind, List.of(1 - rank), "the bootstrap of " + ends + " failed: " + reason);
  }

  @Override
  public void close() {
    // Nothing to free. The lane drops the bootstrap, and late messages with it.
  }
}
