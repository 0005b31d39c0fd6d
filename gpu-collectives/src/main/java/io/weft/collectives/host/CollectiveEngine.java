package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.operation.Operation;

/**
 * Carries out collectives among a set of ranks, which it numbers from 0: roots are such numbers.
 * One thread at a time, and all ranks of the set in the same order.
 */
interface CollectiveEngine {
  /** Carries it out as a part of the call, and returns how. */
  Algorithm execute(Call call, Operation operation);
}
