package io.weft.spark.feed;

import io.weft.device.Event;
import io.weft.tensor.dlpack.DlpackForm;

/**
 * The rows of one step on one rank, in memory of the rank's GPU: the columns that are tensors of
 * fixed shape. The upload may still run when a rank gets the batch; {@link #ready} completes when
 * it is complete.
 *
 * <p>Valid until the next batch or the end of the feed. The memory is reused after that, so the
 * rank calls {@link #usedOn} for each stream whose work reads or writes it. The memory belongs to
 * the rank alone and may be written to. For the task's thread.
 */
public interface GpuFeedBatch {
  /** Number of rows; 0 only with {@link LastBatch#KEEP}. */
  int rows();

  /**
   * Returns a column's values as an array of [rows, shape...].
   *
   * @throws IllegalArgumentException if there is no such column, or it has no fixed shape
   */
  GpuTensor tensor(String column);

  /**
   * The event that completes when all rows are on the GPU. It is recorded once the upload is
   * enqueued on its lane.
   */
  Event ready();

  /**
   * Makes work that is enqueued on a stream from now on wait for the upload, on the device.
   *
   * @param stream a {@code CUstream} of the GPU's primary context; 0 for the legacy default stream
   * @throws io.weft.device.EventFailedException if the upload failed
   */
  void orderBefore(long stream);

  /**
   * Keeps the memory until the device has completed the work that is now on a stream, even if the
   * batch ends earlier.
   *
   * @param stream as for {@link #orderBefore}
   */
  void usedOn(long stream);

  /**
   * Exports a column by DLPack. Waits for the upload first, because consumers may read at once. The
   * memory stays valid until the consumer has returned it and the device has completed the work
   * that is then on the stream: consumers drop tensors when work on them is enqueued. That may be
   * after the end of the task; the executor must stay alive until then.
   *
   * @param stream on which the consumer works, as for {@link #orderBefore}; it must exist until the
   *     consumer returns the tensor. Use 0 for a consumer that works on the legacy default stream,
   *     or on streams that wait for it. A consumer with several streams first makes this one wait
   *     for the others
   * @return the address of the structure, which the consumer owns
   * @throws IllegalArgumentException as for {@link #tensor}, and for {@link DlpackForm#PLAIN} if
   *     the rows are read-only: rows that moved from GPU to GPU
   * @throws io.weft.device.UnavailableLibraryException without JNA
   */
  long dlpack(String column, DlpackForm form, long stream);

  /**
   * Exports like {@link #dlpack(String, DlpackForm, long)}, for a consumer on the legacy default
   * stream.
   */
  default long dlpack(String column, DlpackForm form) {
    return dlpack(column, form, 0);
  }

  /** Keeps this batch until the lease is closed, but no longer than the task. */
  FeedLease retain();
}
