package io.weft.spark.rapids;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.device.Deadline;
import io.weft.spark.rapids.ControlMessage.BootstrapRound;
import io.weft.transfers.TransferWire;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** All data lanes of a transport, also closed ones that have not ended. Thread-safe. */
final class LaneSet {
  private final LaneParts parts;
  private final List<DataLane> lanes = new ArrayList<>();

  /** Creates an empty set. */
  public LaneSet(LaneParts parts) {
    this.parts = parts;
  }

  /**
   * Opens a lane without a communicator. The caller closes it.
   *
   * @param ends both executors, for messages
   * @param rank 0 for the client, which receives, 1 for the server
   * @param name of its thread
   * @param out sends bootstrap messages to the other end
   */
  public synchronized DataLane open(
      String ends, int rank, String name, Consumer<BootstrapRound> out) {
    boolean unused = lanes.removeIf(DataLane::hasEnded);
    DataLane lane = new DataLane(parts, ends, rank, name, out);
    lanes.add(lane);
    return lane;
  }

  /** Waits until the threads of closed lanes have ended. Returns false after a timeout. */
  public boolean awaitEnd(Duration timeout) throws InterruptedException {
    Deadline deadline = Deadline.after(timeout);
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

  /**
   * The factories of the communicators and wires of lanes.
   *
   * @param communicators of two GPUs
   * @param wires opens a lane's wire over a communicator
   * @param options with the timeout of a move and of a bootstrap
   */
  record LaneParts(
      CommunicatorFactory communicators, TransferWire.Factory wires, CommunicatorOptions options) {}
}
