package io.weft.examples.train;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.tensor.Tensor;
import java.util.Iterator;

/** Where a rank's batches come from: a feed, or files. For one thread. */
public interface BatchSource {
  Communicator communicator();

  /** Batches in an epoch, the same on all ranks. */
  long steps();

  /** The batches of an epoch; one epoch is open at a time. */
  Batches batches(int epoch);

  /** Bytes that were copied so far to make batches of what was exchanged. */
  long copiedBytes();

  /** Batches in order; each is valid until the next. */
  interface Batches extends Iterator<Batch>, AutoCloseable {
    @Override
    void close();
  }

  /**
   * Rows of one step.
   *
   * @param features [rows, features], float32
   * @param labels one int32 for each row
   */
  record Batch(Tensor features, TypedBuffer labels) {
    public long rows() {
      return labels.count();
    }
  }
}
