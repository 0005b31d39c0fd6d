package io.weft.collectives.host;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.arithmetic.Conversion;
import io.weft.collectives.arithmetic.Reduction;
import io.weft.memory.Memory;

/**
 * A reduction whose partial results travel from rank to rank. The 16-bit floats travel as float32
 * once they are combined, and are rounded once, at the end. One thread at a time.
 *
 * <p>Addresses named raw, own and target hold elements of the type, those named partial hold {@link
 * #type()}. A target or partial may also be a source at the same address.
 */
final class PartialResults {
  private final DataType raw;
  private final DataType type;
  private final Reduction rawReduction;
  private final Reduction reduction;
  private final int divisor;
  private final Scratch widened;
  private final long[] sources = new long[2];
  private final long[] targets = new long[1];

  /**
   * A reduction over ranks.
   *
   * @param ranks the number of ranks, for averages
   * @param widened scratch memory for this object's use
   */
  PartialResults(DataType raw, ReduceOp op, int ranks, Reductions reductions, Scratch widened) {
    this.raw = raw;
    this.type = raw.accumulator();
    this.rawReduction = reductions.of(raw, op);
    this.reduction = reductions.of(type, op);
    this.divisor = Reductions.divisor(op, ranks);
    this.widened = widened;
  }

  /** The type of partial results. */
  DataType type() {
    return type;
  }

  private boolean isWide() {
    return type != raw;
  }

  /** The partial result of one rank. */
  void one(long own, long partial, long count) {
    if (isWide()) {
      Conversion.widen(raw, own, partial, count);
    } else if (own != partial) {
      Memory.copy(own, partial, count * type.bytes());
    }
  }

  /** The partial result of two ranks. */
  void two(long first, long second, long partial, long count) {
    if (isWide()) {
      long wide = widened.address(count * type.bytes());
      Conversion.widen(raw, first, wide, count);
      Conversion.widen(raw, second, partial, count);
      run(reduction, wide, partial, partial, count, 1);
    } else {
      run(reduction, first, second, partial, count, 1);
    }
  }

  /** Adds one rank to a partial result. */
  void add(long partial, long own, long count) {
    run(reduction, partial, wide(own, count), partial, count, 1);
  }

  private long wide(long own, long count) {
    if (!isWide()) {
      return own;
    }
    long wide = widened.address(count * type.bytes());
    Conversion.widen(raw, own, wide, count);
    return wide;
  }

  /** Combines two partial results. */
  void join(long first, long second, long partial, long count) {
    run(reduction, first, second, partial, count, 1);
  }

  /** The result of two ranks, when there are only two. */
  void lastTwo(long first, long second, long target, long count) {
    run(rawReduction, first, second, target, count, divisor);
  }

  /** The result of a partial one and the last rank. */
  void last(long partial, long own, long target, long count) {
    if (isWide()) {
      add(partial, own, count);
      finish(partial, target, count);
    } else {
      run(reduction, partial, own, target, count, divisor);
    }
  }

  /** The result, from a partial one of all ranks. */
  void finish(long partial, long target, long count) {
    if (isWide()) {
      Conversion.narrow(raw, partial, target, count, divisor);
    } else if (divisor != 1) {
      sources[0] = partial;
      targets[0] = target;
      reduction.run(sources, 1, targets, 1, count, divisor);
    } else if (partial != target) {
      Memory.copy(partial, target, count * type.bytes());
    }
  }

  private void run(Reduction with, long first, long second, long target, long count, int divideBy) {
    sources[0] = first;
    sources[1] = second;
    targets[0] = target;
    with.run(sources, 2, targets, 1, count, divideBy);
  }
}
