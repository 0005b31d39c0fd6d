/**
 * The GPUs of tests, for the tests of all modules: doubles of libcuda and libnccl, or the machine's
 * own.
 */
package io.weft.testgpus;
