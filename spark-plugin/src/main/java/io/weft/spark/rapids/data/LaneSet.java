package io.weft.spark.rapids.data;

import io.weft.device.Deadline;
import io.weft.spark.rapids.control.ControlMessage.Meet;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** All data lanes of a transport, also those that were closed and have not ended. Thread-safe. */
public final class LaneSet {
  private final LaneParts parts;
  private final List<DataLane> lanes = new ArrayList<>();

  /** No lanes yet; all are made of these parts. */
  public LaneSet(LaneParts parts) {
    this.parts = parts;
  }

  /**
   * A lane that has met nobody; the caller closes it.
   *
   * @param ends both executors, in words
   * @param rank 0 for the client, who receives, 1 for the server
   * @param name of its thread
   * @param out the way for messages of meetings to the other end
   */
  public synchronized DataLane open(String ends, int rank, String name, Consumer<Meet> out) {
    boolean unused = lanes.removeIf(DataLane::hasEnded);
    DataLane lane = new DataLane(parts, ends, rank, name, out);
    lanes.add(lane);
    return lane;
  }

  /** Waits until lanes that were closed have let go of everything; false when they do not. */
  public boolean awaitEnd(Duration patience) throws InterruptedException {
    Deadline deadline = Deadline.after(patience);
    List<DataLane> all;
    synchronized (this) {
      all = List.copyOf(lanes);
    }
    boolean ended = true;
    for (DataLane lane : all) {
      ended &= lane.awaitEnd(Math.max(0, deadline.remainingNanos()));
    }
    return ended;
  }
}
