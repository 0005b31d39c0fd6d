/** Tests of the binding of libraries, and the doubles of libcuda and libnccl for GPU tests. */
package io.weft.device;
