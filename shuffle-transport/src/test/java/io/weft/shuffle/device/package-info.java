/** Tables on devices, on GPUs or on the double of libcuda. */
package io.weft.shuffle.device;
