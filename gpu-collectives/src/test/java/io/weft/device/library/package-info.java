/** Tests of the binding of libraries, and the doubles of libcuda and libnccl that GPU tests use. */
package io.weft.device.library;
