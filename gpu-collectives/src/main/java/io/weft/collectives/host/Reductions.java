package io.weft.collectives.host;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.arithmetic.Reduction;
import java.util.EnumMap;
import java.util.Map;

/** Caches the reductions that a communicator has used, with their tiles. One thread at a time. */
final class Reductions {
  private final Map<DataType, Map<ReduceOp, Reduction>> made = new EnumMap<>(DataType.class);

  Reduction of(DataType type, ReduceOp op) {
    Map<ReduceOp, Reduction> byOp = made.get(type);
    if (byOp == null) {
      byOp = new EnumMap<>(ReduceOp.class);
      made.put(type, byOp);
    }
    Reduction reduction = byOp.get(op);
    if (reduction == null) {
      reduction = Reduction.of(type, op);
      byOp.put(op, reduction);
    }
    return reduction;
  }

  /** The divisor of the combination of this number of ranks. */
  static int divisor(ReduceOp op, int ranks) {
    return op == ReduceOp.AVERAGE ? ranks : 1;
  }
}
