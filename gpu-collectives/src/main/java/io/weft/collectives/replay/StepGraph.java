package io.weft.collectives.replay;

import io.weft.device.Event;
import io.weft.device.Lane;

/**
 * Steps that a device runs by itself. Keeps the memory of all their buffers until it is closed, or
 * its communicator is or breaks. One thread at a time.
 */
public interface StepGraph extends AutoCloseable {
  /** Runs all steps, as {@link Recording#replay}; all ranks have agreed on it. */
  void replay();

  /** Runs all steps on a lane, behind what the lane has to do already; ends with the last step. */
  Event submit(Lane lane);

  /** On this rank; what was submitted before still runs. */
  @Override
  void close();
}
