package io.weft.spark.feed;

import io.weft.device.Event;
import io.weft.tensor.dlpack.DlpackForm;

/**
 * Rows of one step on one rank, in memory of the rank's GPU: the columns that are tensors of fixed
 * shape. The upload may still be under way when a rank gets the batch; {@link #ready} says when it
 * has ended.
 *
 * <p>Valid until the next batch or the feed's end. Its memory is used again then, so the rank says
 * {@link #usedOn} of each stream whose work reads or writes it. The memory is the rank's alone and
 * may be written to. For the task's thread.
 */
public interface GpuFeedBatch {
  /** Rows; 0 only with {@link LastBatch#KEEP}. */
  int rows();

  /**
   * A column's values as an array of [rows, shape...].
   *
   * @throws IllegalArgumentException if there is no such column, or none of fixed shape
   */
  GpuTensor tensor(String column);

  /** Recorded when the upload has its place on its lane, complete when all rows are there. */
  Event ready();

  /**
   * Lets what is enqueued on a stream from now on wait for the upload, on the device.
   *
   * @param stream a {@code CUstream} of the GPU's primary context; 0 for the legacy default stream
   * @throws io.weft.device.EventFailedException if the upload failed
   */
  void orderBefore(long stream);

  /**
   * Keeps the memory until the device has done what is enqueued on a stream now, also when the
   * batch is over before.
   *
   * @param stream as for {@link #orderBefore}
   */
  void usedOn(long stream);

  /**
   * Exports a column by DLPack. Waits until the upload has ended, as consumers may read at once.
   * The column's memory stays until the consumer has given it back, and the device has done what
   * was on a stream by then: consumers drop tensors when work on them is enqueued. That may be
   * beyond the end of the task; the executor has to live so long.
   *
   * @param stream on which the consumer works, as for {@link #orderBefore}, there until it gives
   *     the tensor back. 0 is for consumers that work on the legacy default stream, or on streams
   *     that wait for it; one that works on several streams lets this one wait for the others first
   * @return the address of the structure, which is the consumer's now
   * @throws IllegalArgumentException as for {@link #tensor}, and for {@link DlpackForm#PLAIN} where
   *     the rows are read-only: those that went from GPU to GPU
   * @throws io.weft.device.library.UnavailableLibraryException without JNA
   */
  long dlpack(String column, DlpackForm form, long stream);

  /** As {@link #dlpack(String, DlpackForm, long)}, for a consumer on the legacy default stream. */
  default long dlpack(String column, DlpackForm form) {
    return dlpack(column, form, 0);
  }

  /** Keeps this batch until the lease is closed, at most until the task ends. */
  FeedLease retain();
}
