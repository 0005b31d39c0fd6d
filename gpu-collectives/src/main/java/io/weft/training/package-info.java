/**
 * Building blocks of a data-parallel trainer: gradients averaged in buckets while the backward pass
 * still runs, accumulation over micro-batches, the Adam optimiser, the softmax cross-entropy loss,
 * and checkpoints.
 *
 * <p>Everything works on buffers in host memory. The caller runs the model and provides its memory.
 * Objects serve one thread at a time, except {@link io.weft.training.GradientBuckets}: any thread
 * may report gradients to it, and its own lane ("weft-lane-gradients-…") runs the all-reduces.
 * Buckets and moments belong to the object that holds them and are freed by its close. Parameters
 * belong to the caller.
 */
package io.weft.training;
