package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.operation.Operation;

/**
 * Carries out collectives among a set of ranks. It numbers the ranks from 0; roots are such
 * numbers. One thread at a time. All ranks of the set run the same collectives in the same order.
 */
interface CollectiveEngine {
  /** Carries out an operation as a part of the call, and returns the algorithm used. */
  Algorithm execute(Call call, Operation operation);
}
