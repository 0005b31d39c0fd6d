/**
 * Stubs of spark-rapids, as far as Weft's shuffle transport uses it: the names and signatures that
 * its Scala sources have in class files, with as little behaviour as Weft's tests need. Written for
 * Weft; a check compares them with the real classes, see docs/rapids.md. In no jar of Weft.
 */
package com.nvidia.spark.rapids;
