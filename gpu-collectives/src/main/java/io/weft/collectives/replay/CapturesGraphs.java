package io.weft.collectives.replay;

import io.weft.collectives.operation.Operation;
import java.util.List;
import java.util.Optional;

/** A communicator that can have its device run recorded steps by itself. Thread-safe. */
public interface CapturesGraphs {
  /**
   * Captures steps that all ranks have compared, without running them; on all ranks together, in
   * the order of their operations. A failure breaks the communicator.
   *
   * @param steps operations of one step run as a group
   */
  Captured capture(List<List<Operation>> steps);

  /**
   * Lets all ranks know the largest of what they say; on all ranks together, in the order of their
   * operations.
   */
  int agree(int mine);

  /**
   * What became of a capture, the same on all ranks.
   *
   * @param graph empty where one of them cannot do without its host
   * @param reason why; empty text where there is a graph
   */
  record Captured(Optional<StepGraph> graph, String reason) {}
}
