package io.weft.examples.bench.collectives;

import java.io.IOException;
import java.util.Optional;

/** An implementation of collectives. Its ranks run and wait for orders. For one thread. */
interface CollectiveSide extends AutoCloseable {
  /** The name in tables. */
  String name();

  /**
   * Carries out an operation.
   *
   * @param check whether to run it once on known values and compare the results, instead of timing
   * @param iterations of a timed operation
   * @return empty if this side does not support the operation
   */
  Optional<Timing> run(CollectiveCase test, boolean check, int iterations)
      throws IOException, InterruptedException;

  @Override
  void close();

  /**
   * The result of an order.
   *
   * @param nanos of the slowest rank
   * @param cpuNanos of all ranks together, all threads
   * @param errors number of wrong elements; 0 without a check
   * @param algorithm that the side reports; empty if it reports none
   */
  record Timing(long nanos, long cpuNanos, long errors, String algorithm) {}
}
