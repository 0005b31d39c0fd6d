package io.weft.spark.rapids.data;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.device.Deadline;
import io.weft.spark.rapids.control.ControlMessage.Meet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A meeting of the two ends of a lane: what one end says in a round goes to the other as a message
 * of their connection. The client is rank 0, the server rank 1. Thread-safe.
 */
final class LaneMeeting implements Bootstrap {
  private final UniqueId id;
  private final int rank;
  private final long epoch;
  private final String ends;
  private final Consumer<Meet> out;
  private final Map<String, byte[]> heard = new HashMap<>();
  private String failure;

  /**
   * One end.
   *
   * @param ends both, in words
   * @param out the way to the other
   */
  LaneMeeting(UniqueId id, int rank, long epoch, String ends, Consumer<Meet> out) {
    this.id = id;
    this.rank = rank;
    this.epoch = epoch;
    this.ends = ends;
    this.out = out;
  }

  long epoch() {
    return epoch;
  }

  /** What the other end says in a round. */
  synchronized void hear(String round, byte[] message) {
    heard.put(round, message);
    notifyAll();
  }

  /** The other end will not come. */
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
    out.accept(new Meet(epoch, round, mine));
    byte[] theirs = await(round, deadline);
    return rank == 0 ? List.of(mine, theirs) : List.of(theirs, mine);
  }

  private synchronized byte[] await(String round, Deadline deadline) {
    try {
      while (failure == null && !heard.containsKey(round) && !deadline.expired()) {
        TimeUnit.NANOSECONDS.timedWait(this, Math.max(1, deadline.remainingNanos()));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw failed(Kind.ABORTED, "interrupted in round " + round);
    }
    if (heard.containsKey(round)) {
      return heard.remove(round);
    }
    if (failure != null) {
      throw failed(Kind.ABORTED, failure);
    }
    throw failed(Kind.TIMEOUT, "the other end did not come to round " + round + " in " + deadline);
  }

  private CollectiveException failed(Kind kind, String reason) {
    return new CollectiveException(
        kind, List.of(1 - rank), "the meeting of " + ends + " failed: " + reason);
  }

  @Override
  public void close() {
    // What is still said belongs to nobody; the lane forgets the meeting.
  }
}
