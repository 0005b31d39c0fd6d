package io.weft.examples.bench.collectives;

import java.io.IOException;
import java.util.Optional;

/** An implementation of collectives whose ranks run and wait for orders. One thread. */
interface CollectiveSide extends AutoCloseable {
  /** Short, for the table. */
  String name();

  /**
   * Carries out an operation.
   *
   * @param check whether to run it once on known values and compare, or else to time it
   * @param iterations how often, when it is timed
   * @return empty if this side has no such operation
   */
  Optional<Timing> run(CollectiveCase test, boolean check, int iterations)
      throws IOException, InterruptedException;

  @Override
  void close();
}
