/** The GPUs for tests of all modules: doubles of libcuda and libnccl, or real ones. */
package io.weft.testgpus;
