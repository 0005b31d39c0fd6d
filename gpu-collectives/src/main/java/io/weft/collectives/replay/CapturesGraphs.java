package io.weft.collectives.replay;

import io.weft.collectives.operation.Operation;
import java.util.List;
import java.util.Optional;

/** A communicator whose device can run recorded steps without the host. Thread-safe. */
public interface CapturesGraphs {
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
}
