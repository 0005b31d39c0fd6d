/** Tests of the GPU of an executor. */
package io.weft.spark.gpu;
