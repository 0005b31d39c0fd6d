package io.weft.spark.feed;

import io.weft.tensor.Tensor;
import io.weft.tensor.dlpack.DlpackForm;
import java.nio.ByteBuffer;
import org.apache.arrow.vector.VectorSchemaRoot;

/**
 * Rows of one step on one rank, where the exchange put them: every view is of the same memory and
 * nothing is copied. Valid until the next batch or the feed's end; use after that reads foreign
 * memory or ends the process. Do not write to it: other epochs read the same bytes.
 */
public interface FeedBatch {
  /** Rows; 0 only with {@link LastBatch#KEEP}. */
  int rows();

  /**
   * A column's values as an array of [rows, shape...].
   *
   * @param column a number column without nulls (shape [rows]), or a column of {@link
   *     io.weft.spark.feed.WeftTensors} of fixed shape
   * @throws IllegalArgumentException if there is no such column or its type is no tensor's
   * @throws IllegalStateException if a row's value is null, has a null inside or another shape,
   *     naming column, row and both shapes
   */
  Tensor tensor(String column);

  /** The bytes of {@link #tensor}, read-only, in the byte order of the machine. */
  ByteBuffer byteBuffer(String column);

  /**
   * All columns as Arrow vectors on the same memory. Closed with the batch; closed or cleared
   * before, the next call makes others.
   */
  VectorSchemaRoot arrow();

  /**
   * Exports {@link #arrow()} by Arrow's C data interface into structures that the caller allocated.
   * The consumer calls their release function as the interface says; a lease keeps the memory until
   * then.
   *
   * @param arrayAddress of a {@code struct ArrowArray}
   * @param schemaAddress of a {@code struct ArrowSchema}
   * @throws IllegalStateException if {@code org.apache.arrow:arrow-c-data} is not on the class path
   */
  void exportTo(long arrayAddress, long schemaAddress);

  /**
   * Exports {@link #tensor} by DLPack, without a copy; a lease keeps the memory until the consumer
   * gives it back, which it does before the task ends: the executor cannot use it for anything else
   * before.
   *
   * @param form {@link DlpackForm#VERSIONED}, which says that the elements are read-only
   * @return the address of the structure, which is the consumer's now
   * @throws IllegalArgumentException for the other form, and as for {@link #tensor}
   * @throws io.weft.device.library.UnavailableLibraryException if JNA is not on the class path
   */
  long dlpack(String column, DlpackForm form);

  /** Whether all of it is read where its map task wrote it, or where the network delivered it. */
  boolean inPlace();

  /** Keeps this batch, and everything read from it, until the lease is closed. */
  FeedLease retain();
}
