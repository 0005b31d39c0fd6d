/**
 * The driver side while an application runs: the directory of peers, the last reports, the answers
 * to executors, and warnings for the user.
 *
 * <p>It answers executors on Spark's message threads without blocking. The driver plugin owns and
 * stops the garbage thread.
 */
package io.weft.spark.driver;
