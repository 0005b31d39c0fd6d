/**
 * The transport against what spark-rapids' client and server do, on the doubles of CUDA and NCCL.
 */
package io.weft.spark.rapids;
