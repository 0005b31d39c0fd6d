package io.weft.examples.train;

import io.weft.collectives.Communicator;
import io.weft.collectives.TypedBuffer;
import io.weft.tensor.Tensor;
import java.util.Iterator;

/** The source of a rank's batches: a feed or files. For one thread. */
interface BatchSource {
  Communicator communicator();

  /** The number of batches in an epoch, the same on all ranks. */
  long steps();

  /** Opens the batches of an epoch. Only one epoch is open at a time. */
  Batches batches(int epoch);

  /** Bytes copied so far to form batches after the exchange. */
  long copiedBytes();

  /** The batches in order; a batch is valid until the next one. */
  interface Batches extends Iterator<Batch>, AutoCloseable {
    @Override
    void close();
  }

  /**
   * The rows of one step.
   *
   * @param features [rows, features], float32
   * @param labels [rows], int32
   */
  record Batch(Tensor features, TypedBuffer labels) {
    long rows() {
      return labels.count();
    }
  }
}
