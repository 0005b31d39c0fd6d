/**
 * The entry points that users name in Spark's settings. {@link io.weft.spark.WeftPlugin} in {@code
 * spark.plugins} turns Weft on. {@link io.weft.spark.WeftKryoRegistrator} in {@code
 * spark.kryo.registrator} lets RDDs shuffle tensors.
 *
 * <p>The driver side decides at start whether Weft serves the application and configures Spark for
 * it. No other package depends on this one.
 */
package io.weft.spark;
