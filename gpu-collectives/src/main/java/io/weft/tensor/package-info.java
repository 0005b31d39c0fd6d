/**
 * Tensors in host memory: a type (element type and shape), a run of bytes in C order, and whoever
 * frees it.
 *
 * <p>{@code TensorType} is immutable. A {@code Tensor} may be read by many threads; its owner
 * closes it once nobody uses it any more. Views (rows) never own anything.
 */
package io.weft.tensor;
