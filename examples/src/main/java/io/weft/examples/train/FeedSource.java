package io.weft.examples.train;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.spark.feed.FeedBatch;
import io.weft.spark.feed.FeedBatches;
import io.weft.spark.feed.FeedTask;
import io.weft.tensor.Tensor;

/**
 * Batches of a feed, read where the exchange put them. Only what is left of each map task, less
 * than a batch, has been copied together once.
 */
final class FeedSource implements BatchSource {
  private final FeedTask task;
  private int firstEpoch = -1;
  private long gatheredBytes;

  FeedSource(FeedTask task) {
    this.task = task;
  }

  @Override
  public Communicator communicator() {
    return task.communicator();
  }

  @Override
  public long steps() {
    return task.steps();
  }

  @Override
  public Batches batches(int epoch) {
    FeedBatches batches = task.batches(epoch);
    firstEpoch = firstEpoch < 0 ? epoch : firstEpoch;
    boolean count = epoch == firstEpoch;
    return new Batches() {
      @Override
      public boolean hasNext() {
        return batches.hasNext();
      }

      @Override
      public Batch next() {
        FeedBatch batch = batches.next();
        Tensor features = batch.tensor(PriceClasses.FEATURES);
        TypedBuffer labels = batch.tensor(PriceClasses.LABEL).buffer();
        if (count && !batch.inPlace()) {
          gatheredBytes += features.type().bytes() + labels.bytes();
        }
        return new Batch(features, labels);
      }

      @Override
      public void close() {
        batches.close();
      }
    };
  }

  @Override
  public long copiedBytes() {
    return gatheredBytes;
  }
}
