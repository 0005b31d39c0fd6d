/**
 * Tests of the transport with fakes of spark-rapids' client and server, on the doubles of CUDA and
 * NCCL.
 */
package io.weft.spark.rapids;
