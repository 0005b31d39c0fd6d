/**
 * The messages between the driver and the executors of an application, and their encoding. They are
 * sent as bytes, because Spark's message threads do not see the classes of the application's jars.
 *
 * <p>Values and stateless functions: thread-safe, and nothing to free.
 */
package io.weft.spark.message;
