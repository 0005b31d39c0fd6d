/**
 * Tensors in host memory: a type (element type and shape), a run of bytes in C order, and an owner
 * that frees it.
 *
 * <p>{@link io.weft.tensor.TensorType} is immutable. Many threads may read a {@link
 * io.weft.tensor.Tensor}; its owner closes it when no thread uses it any more. Views (rows) never
 * own memory.
 */
package io.weft.tensor;
