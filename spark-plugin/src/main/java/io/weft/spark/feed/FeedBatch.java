package io.weft.spark.feed;

import io.weft.tensor.Tensor;
import io.weft.tensor.dlpack.DlpackForm;
import java.nio.ByteBuffer;
import org.apache.arrow.vector.VectorSchemaRoot;

/**
 * The rows of one step on one rank, in the memory where the exchange put them. All views share that
 * memory and nothing is copied. Valid until the next batch or the end of the feed; later use reads
 * foreign memory or crashes the process. Do not write to it: other epochs read the same bytes.
 */
public interface FeedBatch {
  /** Number of rows; 0 only with {@link LastBatch#KEEP}. */
  int rows();

  /**
   * Returns a column's values as an array of [rows, shape...].
   *
   * @param column a number column without nulls (shape [rows]), or a column of {@link
   *     io.weft.spark.feed.WeftTensors} of fixed shape
   * @throws IllegalArgumentException if there is no such column or its type is not a tensor type
   * @throws IllegalStateException if a row's value is null, contains a null or has another shape;
   *     the message names column, row and both shapes
   */
  Tensor tensor(String column);

  /** Returns the bytes of {@link #tensor}, read-only, in native byte order. */
  ByteBuffer byteBuffer(String column);

  /**
   * Returns all columns as Arrow vectors on the same memory. They are closed with the batch. If the
   * caller closes or clears them earlier, the next call makes new ones.
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
   * Exports {@link #tensor} by DLPack, without a copy. A lease keeps the memory until the consumer
   * returns it, which must be before the task ends: until then the executor cannot reuse the
   * memory.
   *
   * @param form {@link DlpackForm#VERSIONED}, which marks the elements as read-only
   * @return the address of the structure, which the consumer owns
   * @throws IllegalArgumentException for the other form, and as for {@link #tensor}
   * @throws io.weft.device.UnavailableLibraryException if JNA is not on the class path
   */
  long dlpack(String column, DlpackForm form);

  /**
   * Returns whether all rows are read where their map task wrote them or where the network
   * delivered them.
   */
  boolean inPlace();

  /** Keeps this batch, and all views of it, valid until the lease is closed. */
  FeedLease retain();
}
