package io.weft.collectives.replay;

import io.weft.device.Event;
import io.weft.device.Lane;

/**
 * Steps that a device runs without the host. Keeps the memory of all their buffers until it is
 * closed, or its communicator is closed or breaks. One thread at a time.
 */
public interface StepGraph extends AutoCloseable {
  /** Runs all steps, as {@link Recording#replay}. All ranks must have agreed on it before. */
  void replay();

  /** Runs all steps on a lane, after the lane's earlier work; ends with the last step. */
  Event submit(Lane lane);

  /** Closes the graph on this rank; submitted replays still run. */
  @Override
  void close();
}
