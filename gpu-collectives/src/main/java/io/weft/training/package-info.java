/**
 * Building blocks of a data-parallel trainer. Start with {@link io.weft.training.GradientBuckets},
 * which averages gradients while the backward pass still runs, {@link io.weft.training.Adam}, and
 * {@link io.weft.training.Checkpoints}.
 *
 * <p>Everything works on buffers in host memory, which belong to the caller. Objects serve one
 * thread at a time, except {@link io.weft.training.GradientBuckets}: any thread may report
 * gradients to it, and its own lane ("weft-lane-gradients-…") runs the all-reduces.
 */
package io.weft.training;
