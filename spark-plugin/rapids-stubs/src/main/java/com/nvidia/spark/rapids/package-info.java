/**
 * Stubs of the spark-rapids classes that Weft's shuffle transport uses: the names and signatures of
 * the real class files, with only the behaviour that Weft's tests need. Written for Weft; a check
 * compares them with the real classes, see docs/rapids.md. They are in no jar of Weft.
 */
package com.nvidia.spark.rapids;
