/** Tests of functions with JCuda, whose own native code calls the double of libcuda. */
package io.weft.spark.gpu.jcuda;
