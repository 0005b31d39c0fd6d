package io.weft.collectives.arithmetic;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.arithmetic.FloatReductions.DoubleReduction;
import io.weft.collectives.arithmetic.FloatReductions.FloatReduction;
import io.weft.collectives.arithmetic.FloatReductions.HalfReduction;
import io.weft.collectives.arithmetic.IntegerReductions.ByteReduction;
import io.weft.collectives.arithmetic.IntegerReductions.IntReduction;
import io.weft.collectives.arithmetic.IntegerReductions.LongReduction;
import io.weft.collectives.arithmetic.IntegerReductions.ShortReduction;

/**
 * A reduction of one element type over raw memory.
 *
 * <p>It works tile by tile: it copies sources into arrays of a few KB, combines them there, and
 * copies the result to every target. The JIT compiler vectorises loops over arrays but not loops
 * over raw addresses. A tile stays in the first-level cache, so the extra copy costs little. 8 KB
 * was the fastest tile of 2 to 256 KB measured.
 *
 * <p>Sources are combined in their order, so the result does not depend on which rank computes it.
 * Not thread-safe, because it holds the tiles.
 */
public abstract class Reduction {
  static final int TILE_BYTES = 8 << 10;

  /** See {@link #looped}. */
  private static final int SHORTEST_LOOP = 128;

  private final int elementBytes;
  private final int tileElements;

  Reduction(DataType type) {
    this.elementBytes = type.bytes();
    this.tileElements = TILE_BYTES / type.bytes();
  }

  /** Creates a reduction with its own tiles. For AVERAGE it sums; {@link #run} divides. */
  public static Reduction of(DataType type, ReduceOp op) {
    return switch (type) {
      case INT8 -> new ByteReduction(op);
      case INT16 -> new ShortReduction(op);
      case INT32 -> new IntReduction(op);
      case INT64 -> new LongReduction(op);
      case FLOAT16, BFLOAT16 -> new HalfReduction(type, op);
      case FLOAT32 -> new FloatReduction(op);
      case FLOAT64 -> new DoubleReduction(op);
    };
  }

  /**
   * Combines element i of all sources into element i of every target.
   *
   * @param sources addresses; a source may also be a target at the same address
   * @param sourceCount number of sources, at least 1
   * @param targets addresses
   * @param targetCount number of targets
   * @param count elements
   * @param divisor divides the result; 1 for none
   */
  public final void run(
      long[] sources, int sourceCount, long[] targets, int targetCount, long count, int divisor) {
    for (long done = 0; done < count; done += tileElements) {
      int n = (int) Math.min(tileElements, count - done);
      long offset = done * elementBytes;
      load(sources[0] + offset, n);
      for (int source = 1; source < sourceCount; source++) {
        combine(sources[source] + offset, n);
      }
      if (divisor != 1) {
        divide(n, divisor);
      }
      for (int target = 0; target < targetCount; target++) {
        store(targets[target] + offset, n);
      }
    }
  }

  /**
   * The length of a loop that combines n elements of tiles. If most loops were short when the JIT
   * compiler saw them, it does not vectorise them, and long ones take three times as long. So the
   * loop also combines elements after the last one, which are not read.
   */
  static int looped(int n) {
    return Math.max(n, SHORTEST_LOOP);
  }

  /** Loads n elements into the accumulator. */
  abstract void load(long address, int n);

  /** Combines the accumulator with n elements. */
  abstract void combine(long address, int n);

  abstract void divide(int n, int divisor);

  /** Writes the accumulator's first n elements. */
  abstract void store(long address, int n);
}
