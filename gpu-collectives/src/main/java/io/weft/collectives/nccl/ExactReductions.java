package io.weft.collectives.nccl;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.ReduceOp;
import io.weft.collectives.operation.AllReduce;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.Reduce;
import io.weft.collectives.operation.ReduceScatter;

/**
 * Knows which operations NCCL computes as {@link ReduceOp} defines them. NCCL rounds 16-bit floats
 * at every step, averages floats before it adds them, ignores NaN in minimum and maximum, and has
 * no 16-bit integers. Stateless.
 */
final class ExactReductions {
  private ExactReductions() {}

  /** Whether NCCL computes this operation exactly. */
  static boolean areOfNccl(Operation operation) {
    if (operation instanceof AllReduce each) {
      return areOfNccl(each.send().type(), each.op());
    }
    if (operation instanceof Reduce each) {
      return areOfNccl(each.send().type(), each.op());
    }
    if (operation instanceof ReduceScatter each) {
      return areOfNccl(each.send().type(), each.op());
    }
    return true;
  }

  private static boolean areOfNccl(DataType type, ReduceOp op) {
    return switch (type) {
      case INT8, INT32, INT64 -> op != ReduceOp.AVERAGE;
      case FLOAT32, FLOAT64 -> op == ReduceOp.SUM || op == ReduceOp.PRODUCT;
      case INT16, FLOAT16, BFLOAT16 -> false;
    };
  }
}
