/** The CUDA runtime over the double of libcuda, and the double's own strictness. */
package io.weft.device.cuda;
