package io.weft.collectives;

import io.weft.device.Event;
import io.weft.device.Lane;
import java.util.Optional;

/**
 * A fixed sequence of operations on fixed buffers, made by {@link Communicator#record}. All ranks
 * compare the sequence once, when it is recorded. On the host a replay is one submission: all steps
 * take one turn of the communicator, and none is checked again. On a device the steps are a graph.
 *
 * <p>Before each replay the ranks agree, by one all-reduce of 4 bytes, that all buffers still
 * exist. One thread at a time on each rank. {@link #replay} and {@link #submit} are collective.
 */
public interface Recording extends AutoCloseable {
  /** The number of steps; a group counts as one. */
  int size();

  /**
   * Runs all steps in their order and returns once this rank's part is done.
   *
   * @throws CollectiveException of kind INVALID, on all ranks and before any data moves, if a
   *     buffer is closed, is too short, or moved although that is refused; the message names it.
   *     Also if the communicator has failed.
   */
  void replay();

  /**
   * Runs all steps on a lane. The ranks agree on the calling thread, after everything submitted to
   * the communicator before.
   *
   * @return ends with the last step
   * @throws CollectiveException as {@link #replay}; failures of steps arrive in the event
   */
  Event submit(Lane lane);

  /** Why this rank's host runs every step; empty if a graph of the device does. */
  Optional<String> whyNoGraph();

  /** The current counters. */
  ReplayStatistics statistics();

  /**
   * Releases the buffers and the graphs of the device, once replays that were submitted have ended.
   * This rank replays no more.
   */
  @Override
  void close();

  /**
   * Counters of a recording on this rank.
   *
   * @param replays replays that ran or were submitted
   * @param updates replays that first looked up moved buffers of this rank again
   * @param refusals replays that all ranks refused
   */
  record ReplayStatistics(long replays, long updates, long refusals) {}
}
