/** The NCCL implementation over the doubles of libcuda and libnccl. */
package io.weft.collectives.nccl;
