/** Tests of tables of cudf, on a double of its native library. */
package io.weft.spark.gpu.cudf;
