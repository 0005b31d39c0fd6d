/**
 * What driver and executors of an application say to each other, and how it is written: as bytes,
 * because the threads of Spark's message system do not see the classes of jars that came with the
 * application.
 *
 * <p>Values and stateless functions: thread-safe, and nothing to free.
 */
package io.weft.spark.message;
