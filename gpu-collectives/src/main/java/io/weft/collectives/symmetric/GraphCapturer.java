package io.weft.collectives.symmetric;

import io.weft.collectives.Operation;
import io.weft.device.Event;
import io.weft.device.Lane;
import java.util.List;
import java.util.Optional;

/** A communicator whose device can run recorded steps without the host. Thread-safe. */
public interface GraphCapturer {
  /**
   * Captures steps that all ranks have compared, without running them. All ranks call it together,
   * in the order of their operations. A failure breaks the communicator.
   *
   * @param steps operations of one step run as a group
   */
  Captured capture(List<List<Operation>> steps);

  /**
   * Returns the maximum of the values of all ranks. All ranks call it together, in the order of
   * their operations.
   */
  int agree(int mine);

  /**
   * The result of a capture, the same on all ranks.
   *
   * @param graph empty if a step needs the host on one of the ranks
   * @param reason why; empty text if there is a graph
   */
  record Captured(Optional<StepGraph> graph, String reason) {}

  /**
   * Steps that a device runs without the host. Keeps the memory of all their buffers until it is
   * closed, or its communicator is closed or breaks. One thread at a time.
   */
  public interface StepGraph extends AutoCloseable {
    /** Runs all steps, as {@link StepRecording#replay}. All ranks must have agreed on it before. */
    void replay();

    /** Runs all steps on a lane, after the lane's earlier work; ends with the last step. */
    Event submit(Lane lane);

    /** Closes the graph on this rank; submitted replays still run. */
    @Override
    void close();
  }
}
