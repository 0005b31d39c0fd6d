/**
 * What a data-parallel trainer needs beside a model: gradients averaged in buckets while the
 * backward pass still runs, accumulation over micro-batches, the Adam optimiser, the softmax
 * cross-entropy loss, and checkpoints.
 *
 * <p>Everything works on buffers in host memory; who runs the model, and where its memory comes
 * from, is the caller's business. Objects here serve one thread at a time except {@link
 * io.weft.training.GradientBuckets}, which is told of gradients by any thread and has a lane of its
 * own ("weft-lane-gradients-…") that runs the all-reduces. Buckets and moments belong to the object
 * that holds them and are freed by its close; parameters belong to the caller.
 */
package io.weft.training;
