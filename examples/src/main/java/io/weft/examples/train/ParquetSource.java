package io.weft.examples.train;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.ReduceOp;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.SplittableRandom;

/**
 * Batches of rows that were read from a file: in another order every epoch, gathered row by row.
 * The other side of the comparison with a feed.
 */
final class ParquetSource implements BatchSource, AutoCloseable {
  private final Communicator communicator;
  private final ParquetRows rows;
  private final long seed;
  private final int batchRows;
  private final long steps;
  private final Tensor features;
  private final Tensor labels;
  private final int width;
  private long gatheredBytes;

  /**
   * Collective: the rank with the fewest rows says how many steps there are.
   *
   * @param rows that stay the caller's, and open for as long as this is
   */
  ParquetSource(Communicator communicator, ParquetRows rows, int width, int batchRows, long seed) {
    this.communicator = communicator;
    this.rows = rows;
    this.width = width;
    this.batchRows = batchRows;
    this.seed = seed;
    this.features = Tensor.allocate(TensorType.of(DataType.FLOAT32, batchRows, width));
    this.labels = Tensor.allocate(TensorType.of(DataType.INT32, batchRows));
    try (Tensor least = Tensor.allocate(TensorType.of(DataType.INT64, 1))) {
      Memory.putLong(least.address(), rows.rows() / batchRows);
      communicator.allReduce(least.buffer(), ReduceOp.MIN);
      this.steps = Memory.getLong(least.address());
    }
  }

  @Override
  public Communicator communicator() {
    return communicator;
  }

  @Override
  public long steps() {
    return steps;
  }

  @Override
  public long copiedBytes() {
    return rows.copiedBytes() + gatheredBytes;
  }

  @Override
  public Batches batches(int epoch) {
    int[] order = order(epoch);
    return new Batches() {
      private int next;

      @Override
      public boolean hasNext() {
        return next < steps;
      }

      @Override
      public Batch next() {
        gather(order, next * batchRows);
        next++;
        return new Batch(features, labels.buffer());
      }

      @Override
      public void close() {
        next = (int) steps;
      }
    };
  }

  private void gather(int[] order, int first) {
    for (int i = 0; i < batchRows; i++) {
      int row = order[first + i];
      rows.copyRow(row, features.address() + 4L * width * i);
      Memory.putInt(labels.address() + 4L * i, rows.label(row));
    }
    gatheredBytes += features.type().bytes() + labels.type().bytes();
  }

  /** A permutation of Fisher and Yates. */
  private int[] order(int epoch) {
    int[] order = new int[Math.toIntExact(rows.rows())];
    SplittableRandom random = new SplittableRandom(seed + epoch);
    for (int i = 0; i < order.length; i++) {
      int other = random.nextInt(i + 1);
      order[i] = order[other];
      order[other] = i;
    }
    return order;
  }

  @Override
  public void close() {
    features.close();
    labels.close();
  }
}
