/**
 * Calls into Spark that differ between the supported versions, and Spark's private fields that Weft
 * reads. The other packages call these classes and use no reflection on Spark themselves.
 *
 * <p>{@link io.weft.spark.compat.SparkFeatures} says what the running Spark can do. {@link
 * io.weft.spark.compat.PortableDependency} is the base of Weft's shuffle dependencies. {@link
 * io.weft.spark.compat.ScalaInterop} creates Scala values from Java ones. The package depends on
 * Spark only.
 */
package io.weft.spark.compat;
