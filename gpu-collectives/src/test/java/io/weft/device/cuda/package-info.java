/** Tests of the CUDA runtime with the double of libcuda, and of the double's checks. */
package io.weft.device.cuda;
